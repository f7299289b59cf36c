"""How people speak: asides by circle, openings, asides to older matters, replies."""

from __future__ import annotations

VOICES = """\
= home
My {rel} {partner} heard all of it over supper and only asked whether {pet} had been fed.
{partner} wants it kept out of our flat on {street}, or at least out of reach of {pet}.
There was a row about it on the stairs at {street}, which {pet} won and my {rel} {partner} lost.
{pet} sat on my notes throughout, so {partner} read them out to me across the kitchen.
We are saving for the roof at {street}, and {partner}, being the sensible {rel}, keeps the tally
  in the kitchen.
My {rel} {partner} has drawn up a rota for {street} and even {pet} is on it.
{partner} thinks I overdo it; {pet}, stretched out in our kitchen, seems to agree.
When I got back to {street} my {rel} {partner} had kept supper warm and {pet} had eaten most of
  it.
I told {partner} while we were walking {pet} up and down {street}.
It keeps me out of the kitchen, says {partner}, who as a {rel} is allowed to say so, with {pet}
  for a witness.
Our flat on {street} is too cramped for one more thing, and {partner} points out that {pet} was
  here first.
{partner} took a photograph with {pet} in it and pinned it up in the kitchen at {street}.
I practise the telling of it on {pet} before I try it on my {rel} {partner} at supper.
If supper is late on {street}, {partner} knows why and {pet} makes a speech.
My {rel} {partner} rolled both eyes, then asked three good questions while brushing {pet} in the
  kitchen.
{pet} has been poorly, so {partner} and I take turns sleeping on the kitchen floor at {street}.
It was {partner} who said over supper that any {rel} can only nod so often, and that {pet} nods
  better.
Everything I own now smells of it, says {partner}, and {pet} sneezes all the way up the stairs on
  {street}.
I worked it out on the back of a gas bill in the kitchen, with {pet} underfoot and my {rel}
  {partner} humming.
{street} was dug up all week, so {partner} and {pet} and I ate supper to the sound of drills.
The neighbours on {street} think {pet} is in charge, and my {rel} {partner} has stopped correcting
  them.
I burnt the supper over it, and {partner} ate the black bits while {pet} looked away.
{partner} and I had it out on the stairs, in whispers, because {pet} sides with whoever is louder.
On {street} nothing stays private; my {rel} {partner} heard it from the woman who clips {pet}.
I read it aloud in the kitchen, and my {rel} {partner} laughed at the parts that {pet} found sad.
The kitchen ceiling leaks on {street}, so {partner} moved the bucket and {pet} moved in beneath
  it.

= work
I told {mate} about it between two rounds of {task}, and by noon all of {work} had an opinion.
{boss} lets me swap shifts at {work} as long as {task} gets done first.
At {work} I'm teased for it, mostly by {mate}, who is meant to be doing {task}.
I nearly made a mess of {task} because I was thinking about it, and {boss} noticed.
{mate} covers my shift at {work} when I need the hour.
{boss} has pinned a cutting about it above the sink at {work}, next to the rules for {task}.
It keeps me sane through {task}, and {mate} says the shift goes quicker when I'm cheerful.
We were short at {work}, so {mate} and I did {task} for two and talked of nothing else.
{boss} asked whether it would interfere with {task}, and I said only with the dull parts of the
  shift.
After a double shift of {task} my head was porridge, but {mate} drove me.
I scribbled it down at {work} on the back of a docket meant for {task}; {boss} filed it.
{mate} has started a sweepstake at {work} on how it will end, and {boss} has put in a coin.
Somebody from head branch came to look at {task}, so {boss} told the whole of {work} to act
  natural.
There's talk of cutting shifts at {work}, which worries {mate} more than it worries me.
I've a locker at {work} full of it by now, and {boss} only sighs on the way to {task}.
{mate} and I split a pie on the late shift and went over it again until {task} called.
When {task} was finished {boss} wanted to hear everything, so the shift ended late at {work}.
I owe {mate} three shifts already, and {boss} keeps count with chalk at {work}.
Nobody at {work} believed me until {mate} vouched for it in front of {boss}.
{task} will be automated one day, {boss} says; until then {mate} and I have time to talk.
{boss} came in humming, which at {work} bodes ill, so {mate} and I kept our heads down over
  {task}.
The new one at {work} was told by {mate} that I'm an expert, and {boss} didn't deny it.
I drew it for {mate} in the dust at {work}, between {task} and the end of the shift.
{mate} swears it has improved my {task}, and {boss} is thinking of making it compulsory.
It was a quiet shift, {task} and nothing else, so {boss} sat down with us and asked how it was
  going.
There's a bell at {work} for the end of {task}, and {mate} rings it whenever I begin on the
  subject.

= town
All of {town} seems to know, down to the woman who sells eels at the market by {landmark}.
{neighbour} shouted the latest to me across {landmark} on market day.
I ran into {neighbour} by the {river} and we stood there talking until the lamps of {town} came
  on.
The {river} flooded the lower end of {town} again, so {neighbour} and I took the market path.
{town} is a place where {neighbour} knows your business before you've crossed {landmark}.
It rained on {town} for nine days, and the {river} came up as far as {landmark}.
{neighbour} says nothing like it was seen in {town} since the bridge over the {river} fell down.
I go past {landmark} twice a day, so {neighbour} gets the whole story in instalments.
There was a notice about it by {landmark}, misspelt, and {neighbour} corrected it with a lipstick.
People in {town} are kind about it; {neighbour} left plums from the market on my step.
The gazette for {town} ran half a column, with a photo of {landmark} and {neighbour} in the wrong
  order.
I like {town} best in fog, when the {river} disappears and {neighbour} has to guess who's coming.
{neighbour} and I walked the length of the {river} to {landmark} and settled it between us.
You can hear the market in {town} from my window, with {neighbour} above everyone else, as far as
  {landmark}.
They are repaving around {landmark}, so all of {town} squeezes past the door of {neighbour}.
Somebody fell in the {river} below {landmark} and {neighbour} fished the poor man out, so {town}
  talks of that instead.
{neighbour} bet me a smoked eel from the market that I'd give up before the {river} froze.
The market in {town} was rained off, so {neighbour} had time for my questions under the arch of
  {landmark}.
Where the {river} bends, below {landmark}, {neighbour} keeps a bench, and that is my confessional
  in {town}.
{town} has one taxi, and {neighbour} drives it along the {river} as if it were two.
I walked home along the {river} with {neighbour}, who thinks {town} has never been the same since
  the lamps went electric.
The bagpipers of {town} practised under {landmark}, so {neighbour} had to shout the rest.
{neighbour} sells tickets for everything in {town} and would sell them for the {river} too.
They are voting in {town} on whether to paint {landmark}, and {neighbour} is against all colours.
It's a good year for eels in the {river}, says {neighbour}, and a poor one for sense in {town}.
I left my bicycle against {landmark}, and by evening {neighbour} had oiled it and told half the
  market.

= intro
For the record, I'm {occupation}, so I know nothing about any of this.
You may as well know that I earn my living as {occupation}.
I'm {name}, {occupation} on weekdays, and this is the other half of me.
Being {occupation} has prepared me for none of it.
Remember, you're talking to {occupation} with limited patience.
Life as {occupation} leaves me exactly one free evening.

= prefix
Before I forget:
Right, news:
So, an update:
You'll laugh, but
Well then,
I've been meaning to tell you,
No question today, only this:
Here is where things stand:
Something cheerful for once:
As promised,
It's late, I know, but
Bear with me:
To bring you up to date,
Not urgent at all:
Since you remember everything,
First things first:
Let me think aloud for a minute:
Small announcement:

= callback
By the way:
Unrelated, but
An aside:
On that other matter,
Before I go:
And to return to something older,
Oh, and
Different subject:
I forgot to say,
One more thing:

= reply
That sounds hopeful to me; what happens next?
I'll keep that in mind for when you ask again.
Noted, with all its details.
You tell it well, and I suspect it will get better with time.
Is there anything I can look up for you in the meantime?
Would a checklist help, or would it spoil the fun?
I'd give it a week before deciding anything.
It seems you've got more help than you let on.
Do tell me how that turns out.
What would you change if you could begin again?
Happy to remember it, and to remind you if you like.
That is a good deal to carry; shall we take it one piece at a time?
I can hear that it matters to you.
Shall I draft a message about it?
Understood, and I promise not to offer advice unless asked.
It could be worse, though I see why it doesn't feel so.
Thank you for telling me; the picture is getting clearer.
Then there is only the weather left to blame.
How do the people around you feel about it?
A fine way to spend one's spare hours.
I've no opinion, but I admire the commitment.
Perhaps write that down somewhere safe as well.
Let me know if you would like a reminder nearer the day.
Some problems are best admired from a distance.
That detail will be useful later, I'm sure.
You are allowed to be proud of that, you know.
What does your instinct say?
It would make a decent anecdote at any table.
Shall I sum up what we have so far?
I'm all ears for the next instalment.

= stray place
A colleague of a colleague proposed {x}, and was refused.
There was a ghost seen {x}, if you believe the late news.
I once lost an umbrella {x} and never dared ask for it.
As a child I was sick {x}, and people still bring it up.
I read about a chess prodigy who grew up {x}.
Apparently a film was shot {x}, with real horses.
Someone left a harp {x} overnight, and it was plucked until four.
They caught a runaway pig {x}, in case you missed the headlines.

= stray person
I sat on the train opposite {x} and we exchanged sandwiches.
My godmother almost married {x}.
In the pub quiz we were beaten by {x}.
A burglar was chased off by {x}, so the gazette says.
My old landlord has been succeeded by {x}.
In the lift this morning I was stuck with {x}.
The lottery, you'll have heard, was won by {x}.
I had a dream about {x}, for no reason at all.

= stray time
My insurance runs out {x}, I must remember.
They'll read the gas meter {x}, apparently.
The ring road is closed to traffic {x}, so expect noise.
An aunt of mine always falls ill {x}, regular as rent.
The dustmen have announced that they'll strike {x}.
My great-uncle was born {x}, or so he claims.
My passport expires {x}, of all moments.
The corner bakery shuts {x}, so stock up.

= stray thing
At the flea market somebody wanted ninety for {x}.
A man got on the train carrying {x}, and nobody looked up.
My godmother has left me {x} in her will, I hear.
The raffle had one prize, {x}, won by its own treasurer.
I saw {x} in a shop and walked on, which felt like growth.
The police are looking for {x}, taken from a parked van.
Upstairs they threw out {x}, then fetched it in again.
For his jubilee my old headmaster got {x} and a handshake.

= stray liking
An aunt of mine wrote a whole poem about {x}.
There was a documentary on about {x}; I fell asleep.
Sailors are said to dread {x}.
My doctor blames everything on {x}.
A man on the train complained for an hour about {x}.
My old landlord used to forbid {x}, in writing.
In the city people would pay extra for {x}.
My godmother's recipe for a peaceful life is {x}.
"""
"""By use: one sentence or opening per paragraph."""
