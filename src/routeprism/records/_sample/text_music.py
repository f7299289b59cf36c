"""Threads: the stage, the desk and the night sky. `tables.threads` reads it."""

from __future__ import annotations

THREADS = """\
= choir
+ the choir has swallowed me whole; two months ago I could not have told an alto from an oboe.
+ I sing in a choir now, third row, where the tall ones hide.
- Half of us can't read a score, so we learn the tenor line like a rumour.
- Our conductor taps the lectern with a spoon because the baton went missing.
> How many voices are you by now, and can you reach the low notes?
> Do you practise in the bath, as altos are said to?
person? Who talked {name} into joining the choir?
person: The one who talked me into the choir was {x}.
person: I'd never have gone near a choir had I not been talked into it by {x}.
person< People keep asking who talked me into choir, and I blame {x}.
place? Where does {name}'s choir rehearse?
place: Since the ceiling came down, the choir has to rehearse {x}.
place: We rehearse {x}, which does odd things to a choir and worse things to the basses.
place< I came straight from choir, which means I'd been standing around {x}, trying to rehearse a
  fugue.
time? When will {name}'s choir give its concert?
time: The choir will give its concert {x}, and I have already mislaid my black shoes.
time: They moved our concert twice; now the choir gives it {x}.
time< I've had to turn down a trip, because the choir gives its concert {x}.
thing? What did the choir give its conductor as a farewell present?
thing: As a farewell present for the conductor, the choir picked {x}.
thing: We passed an envelope round the choir, and our conductor got {x} as a farewell present.
thing< The conductor cried, by the way, when the choir produced that farewell present: {x}.
liking? What does {name} enjoy most about the choir?
liking: What I enjoy most in the choir isn't the music, it's {x}.
liking: Ask me what choir is for, and the answer is that most of all I enjoy {x}.
liking< It reminded me of choir, where the bit I enjoy most is {x}.

= accordion
+ the accordion is on the bench, and I'm bringing that wheezing beast to life again.
+ an accordion came my way with eleven dead buttons and a smell of soup.
- The bellows leak along one fold and sigh whenever I cross the carpet.
- I've numbered every reed with a pencil and still managed to swap two of them.
> Are the reeds original, or has somebody been at them already?
> Most of these can be saved with patience and fresh wax.
person? Who is teaching {name} to tune the accordion reeds?
person: Tuning the accordion reeds is beyond any manual, so I'm being taught by {x}.
person: The teacher who shows me how accordion reeds get tuned is {x}.
person< My reeds sound better, thanks to the person teaching me how to tune an accordion, {x}.
place? Where was the accordion found by {name}?
place: I found the accordion {x}, under a sheet, looking ashamed of itself.
place: It's an odd story, how I found that accordion {x} and carried it off for nothing.
place< Nobody believes that I found an accordion {x}, but that's the truth.
time? When does {name} mean to play the accordion in public?
time: I mean to play the accordion in public {x}, ready or not.
time: My public debut, accordion and all, comes {x}; I wrote it on the wall so I can't wriggle
  out.
time< Warn everybody: I play the accordion in public {x}.
thing? What did {name} swap for the accordion's missing strap?
thing: The accordion lacked a strap, so I got one in a swap, and it cost me {x}.
thing: For the missing accordion strap I made a swap: off went {x}.
thing< I do regret the swap a bit, giving up {x} for one accordion strap.
liking? What does {name} love about working on the accordion?
liking: The thing I love about working on the accordion is {x}.
liking: Working on that accordion, I've come to love {x}.
liking< Just as with the accordion work, I seem to love {x}.

= radio
+ I have a radio show, can you imagine, forty minutes to fill on the community frequency.
+ the community radio people have let me loose on a show of my own.
- My jingle is eight seconds of a creaking gate, and listeners write in about it.
- I talked over the news headlines once and nobody has forgiven me.
> What do you play between the talking bits?
> Do you script it, or do you talk as it comes?
person? Who was the first guest on {name}'s radio show?
person: For my first radio show I needed a guest, and I got {x}.
person: The very first guest I had on the radio show was {x}.
person< I still get letters about my first radio guest, {x}.
place? Where is {name}'s radio show broadcast from?
place: Our transmitter is hopeless, so the radio show is broadcast from a cupboard {x}.
place: We broadcast the radio show from a desk {x}, with egg boxes for acoustics.
place< I was on my way to broadcast the radio show from our den {x}.
time? When will {name} do the all-night radio marathon?
time: They've put me down for the radio marathon, all night, and it happens {x}.
time: I agreed to a radio marathon, the all-night sort, and it's going out {x}.
time< Please keep me awake, since the all-night radio marathon is planned {x}.
thing? What did a listener send to {name}'s radio show?
thing: A listener of the radio show was moved to send me {x}.
thing: The oddest thing a listener could send to a radio show must be {x}, and mine arrived
  yesterday.
thing< That parcel a radio listener chose to send, with {x} in it, still sits by the microphone.
liking? What does {name} like best about making the radio show?
liking: If you ask what I like best about making radio, it's {x}.
liking: Making the radio show, the part I like best has turned out to be {x}.
liking< It's the same with making radio, where I like one thing best: {x}.

= play
+ I've been cast in the play, seven lines and a fainting fit.
+ our amateur drama people are doing a play about a lighthouse, and I'm the keeper's ghost.
- The director believes in vocal exercises that frighten passing dogs.
- I learn my lines on the stairs, one line per step, and forget them on the landing.
> Does stage fright visit you, or only the others?
> Who prompts when somebody dries?
person? Who is playing the villain in {name}'s play?
person: The villain of our play is being acted by {x}.
person: Guess who's playing the villain: {x}, and the play is better for it.
person< I met our villain from the play on the way here, that is to say {x}.
place? Where will {name}'s play be performed?
place: We are going to perform the play {x}, because the licence for the proper stage lapsed.
place: The play gets performed {x}, so half the audience will be perched on crates.
place< I spent the morning measuring for the play, seeing that it's performed {x}.
time? When does {name}'s play open?
time: The play has its opening {x}, and I still faint in the wrong direction.
time: Rehearsals drag, yet the play opens {x}, no matter what.
time< I'm useless until the play has opened, and that's {x}.
thing? Which prop keeps vanishing from {name}'s play?
thing: There's a prop in the play that keeps vanishing: {x}.
thing: Somebody walks off with the same prop after every run of the play; it's always {x} that
  keeps vanishing.
thing< They suspect me about that vanishing prop from the play, as if I'd any use for {x}.
liking? What does {name} find most rewarding about the play?
liking: The most rewarding thing about the play, I find, is {x}.
liking: As for the play, I find nothing more rewarding than {x}.
liking< I said once that in the play I find one thing rewarding, namely {x}.

= telescope
+ the telescope has arrived in nine boxes with instructions translated from somewhere.
+ I've joined the people who stand about in fields and look through a telescope.
- Saturn looked like a sticker somebody had put on the lens.
- Clouds come the minute I screw the tripod together; it's almost a service I offer.
> Have you let your eyes adapt for twenty minutes before you look?
> Which object would you most like to see next?
person? Who sold {name} the telescope?
person: The telescope was sold to me by {x}.
person: I trust whoever sold me this telescope, and that was {x}.
person< I rang up about a loose screw, since the telescope was sold to me by {x}.
place? Where does {name} set up the telescope?
place: It's dark enough to set up the telescope {x}, so that's where I go.
place: I set up my telescope {x}, away from the streetlights.
place< I left my gloves where I set up the telescope, meaning {x}.
time? When will {name} take the telescope to the mountain observatory?
time: I'm taking my telescope up to the mountain observatory {x}.
time: We've reserved the mountain observatory {x}, telescope included.
time< My rucksack is half packed for the mountain observatory, where the telescope and I go {x}.
thing? What does {name} use to keep dew off the telescope?
thing: To keep dew off the telescope I use {x}, which makes the others snigger.
thing: Dew ruins everything, so the telescope is kept dry by something daft, {x}.
thing< I explained again why I keep dew off a telescope using {x}.
liking? What does {name} treasure about nights with the telescope?
liking: What I treasure about those nights with the telescope is {x}.
liking: Nights at the telescope have taught me to treasure {x}.
liking< I'd been telling somebody about telescope nights and how I treasure {x}.

= novel
+ the novel stands at forty thousand words and the heroine still has no surname.
+ I am writing a novel, there, I've typed it out.
- I killed off a lodger in chapter nine and miss him every day.
- My writing group reads with red pens and merciful faces.
> Do you plot ahead, or follow the characters about?
> What does the heroine do for a living?
person? Who reads the drafts of {name}'s novel?
person: Every draft of the novel gets read by {x}.
person: Only one reader sees the novel while it's in draft, and that's {x}.
person< I had notes on the novel from the reader of my drafts, {x}.
place? Where does {name} go to write the novel?
place: I can't write at my own table, so I go off and do the novel {x}.
place: The novel only moves when I go and write {x}, with earplugs.
place< I had to go and fetch my charger, which I'd left where I write the novel, {x}.
time? When must {name} hand the finished novel to the competition?
time: The competition wants the finished novel {x}, not an hour later.
time: I must hand the novel to the competition {x}, finished or in rags.
time< I've stopped sleeping because the novel must be finished for that competition {x}.
thing? What does the heroine steal in the opening chapter of {name}'s novel?
thing: In the opening chapter of the novel my heroine steals {x}.
thing: The novel's opening chapter has the heroine stealing {x}, of all the valuables in that
  mansion.
thing< You'd recognise it from my novel, where the heroine in the opening chapter steals {x}.
liking? What does {name} miss on days away from the novel?
liking: On days without the novel I miss {x}.
liking: It's odd what I miss on days when the novel rests: {x}.
liking< I mentioned that on days away from my novel I miss {x}.
"""
"""Six threads."""
