"""Threads: gardens, paths and open water. `tables.threads` reads it."""

from __future__ import annotations

THREADS = """\
= allotment
+ the allotment is mine at last, plot nineteen, with a view of the gasworks.
+ after six years on the waiting roll I've been given an allotment.
- Slugs held a conference in the lettuces and passed several motions.
- The soil is half clay, half buried crockery.
> What have you planted so far?
> A plot usually takes three seasons to forgive its new owner.
person? Who has the plot next to {name}'s allotment?
person: The plot next to my allotment belongs to {x}.
person: On the allotment I'm next to {x}, whose plot is a reproach to us all.
person< I was given marrows by the plot next to my allotment, that is by {x}.
place? Where do the allotment holders keep their spare compost?
place: The spare compost for all the allotment holders is kept {x}.
place: We keep compost to spare {x}, a good walk from the allotment with a barrow.
place< I've been wheeling compost to the allotment again; the spare heap is kept {x}.
time? When is {name}'s allotment inspected by the committee?
time: The committee comes to inspect the allotment {x}, and I have brambles to hide.
time: An inspection of every allotment is due {x}; the committee brings a measuring stick.
time< No outings for me, the allotment committee will inspect us {x}.
thing? What was dug up on {name}'s allotment?
thing: While putting in potatoes on the allotment I dug up {x}.
thing: You won't guess what I dug up from the allotment: {x}.
thing< It's been cleaned, that find I dug up on the allotment, {x}.
liking? What does {name} like most about the allotment?
liking: What I like most up at the allotment is {x}.
liking: I thought it'd be the vegetables, but at the allotment I mostly like {x}.
liking< It's much as on the allotment, where most of all I like {x}.

= bees
+ I keep bees now, two colonies, and I've been stung only where it shows.
+ the bees arrived in a humming box on the passenger seat, belted in.
- The queen has a dot of blue paint and an air of grievance.
- I move so carefully near the hive that people think I've hurt my spine.
> Are they gentle, as these things go?
> It helps to move as though you were underwater.
person? Who gave {name} the first swarm of bees?
person: My first swarm of bees was given to me by {x}.
person: The bees began as a swarm, a gift from {x}, the first I ever handled.
person< I took a jar over as thanks for that first swarm of bees, to {x}.
place? Where does {name} keep the hives for the bees?
place: I had to keep the hives {x}, since no landlord will have bees on a balcony.
place: I keep the hives {x}, and the bees seem to approve.
place< I nipped over to check on the bees, whose hives I keep {x}.
time? When will {name} extract the honey from the hives?
time: I plan to extract the honey from the hives {x}, with every towel we own.
time: The honey has to come out of the hives; extraction comes {x}.
time< Don't count on me, I'll be extracting honey from the bees {x}.
thing? What does {name} use to carry smoke to the bees?
thing: The smoker broke, so the smoke for my bees gets carried about in {x}.
thing: I carry smoke to the bees in a contraption based on {x}.
thing< They laughed at how I carry smoke to bees, but it works, {x} and all.
liking? What did {name} not expect to enjoy about keeping bees?
liking: What I didn't expect to enjoy about bees is {x}.
liking: With bees I expect stings; I did not expect to enjoy {x}.
liking< As I found with the bees, you can enjoy what you never expect: {x}.

= rowing
+ I've taken up rowing, seat three, the engine seat they call it to flatter us.
+ rowing has given me blisters shaped like foreign countries.
- We caught a crab on the bend and drifted backwards past a wedding.
- Our cox is fourteen and merciless.
> How many times a week are you out on the river?
> I hear the timing matters more than the strength.
person? Who coaches {name}'s rowing crew?
person: Our rowing crew is coached by {x}.
person: The coach of the rowing crew, believe it or not, is {x}.
person< I got told off by my rowing coach, {x}, about my elbows.
place? Where does {name}'s rowing crew store its boat?
place: The rowing crew stores its boat {x}, upside down on trestles.
place: Our boat is in storage {x}, which adds a hike to every rowing session.
place< I had to fetch a rigger key from where the rowing crew stores the boat, {x}.
time? When is {name}'s first rowing race?
time: My first rowing race is {x}, against people half my weight.
time: They've entered us for a race, my first in rowing, and it comes {x}.
time< I'm eating porridge twice a day until the rowing race, my first, {x}.
thing? What is the rowing club's trophy made out of?
thing: The trophy of the rowing club was once {x}, I kid you not.
thing: In our rowing club the trophy isn't a cup; it's made out of {x}.
thing< They let me polish the rowing trophy, which somebody made out of {x}.
liking? What keeps {name} coming back to rowing?
liking: What keeps me coming back to rowing is {x}.
liking: I keep coming back to the rowing for one thing only, {x}.
liking< It's what I keep coming back to rowing for, as you know: {x}.

= coastwalk
+ I've begun the coast path, one stage at a time, knees permitting.
+ the coast path is two hundred miles and I've done the flat nineteen.
- A sheep followed me for an hour and a half and would not explain itself.
- My map has been folded so often that one headland is now a hole.
> Which stage comes next, the cliffs or the dunes?
> Take it in short stages and let the dull ones count as well.
person? Who walks the coast path with {name}?
person: I walk the coast path in company, and the company is {x}.
person: My companion for walking the coast path is {x}.
person< I compared boots with my coast path walking companion, {x}.
place? Where did {name} shelter from the storm on the coast path?
place: A storm drove us off the coast path and we took shelter {x}.
place: When the storm hit the coast path I sheltered {x}, and ate all my biscuits.
place< My scarf must still be where we sheltered from that coast path storm, {x}.
time? When does {name} hope to finish the coast path?
time: I hope to finish the coast path {x}, weather and ankles willing.
time: The last stage is pencilled in; I hope the coast path is finished {x}.
time< I've been warned off plans because I hope to finish the coast path {x}.
thing? What did {name} find washed up along the coast path?
thing: Below the coast path something had washed up; I climbed down and it was {x}.
thing: The sea had washed up {x} along the coast path and I couldn't leave it lying there.
thing< I told you what washed up by the coast path, didn't I, {x}.
liking? What does {name} look forward to on each stage of the coast path?
liking: At every stage of the coast path I look forward to {x}.
liking: I look forward to one thing on each coast path stage, and it's {x}.
liking< I look forward to it as I do on the coast path, where it's {x}.

= swifts
+ I count swifts for the bird survey, lying on my back with a clicker.
+ the swifts are over the roofs again, and I've signed up for the bird survey.
- Swifts sleep on the wing, which is more than I manage in a bed.
- My clicker jammed at sixty-one and I had to finish with pebbles.
> Do they come back to the same eaves every year?
> How does one tell them from martins at that height?
person? Who organises the swift survey that {name} takes part in?
person: The swift survey is organised by {x}.
person: Our organiser for the survey of swifts is {x}.
person< The survey organiser rang about my swifts, that's {x}.
place? Where does {name} stand to count the swifts?
place: The best spot to stand and count swifts is {x}.
place: I stand {x} while I count my swifts, neck cricked.
place< I got sunburnt counting swifts, because the spot where I stand is {x}.
time? When will the swift nest boxes be put up?
time: We're putting up nest boxes for the swifts {x}.
time: The nest boxes are sawn and sanded; for the swifts' sake they go up {x}.
time< I've promised to hold the steps when swift nest boxes go up {x}.
thing? What did the swifts nest behind at {name}'s counting spot?
thing: One pair of swifts chose to nest behind {x} that somebody had hung there.
thing: You'd not think swifts could nest behind {x}, yet I saw both of them slip in.
thing< The pair of swifts I mentioned still nest behind {x}.
liking? What does {name} appreciate about counting swifts?
liking: Counting swifts has made me appreciate {x}.
liking: What I appreciate when I'm counting swifts is {x}.
liking< Counting swifts is where I learned to appreciate {x}.

= swimming
+ I swim outdoors all year now, in the lake, with a bobble on my head.
+ the lake swimming has got hold of me; four degrees this morning.
- My feet turned the colour of ham and stayed so until noon.
- A heron watched me get dressed, as it always does, without comment.
> How many minutes do you stay in?
> Do you warm up gently when you come out?
person? Who swims in the lake with {name}?
person: I never swim in the lake alone; beside me there's {x}.
person: My partner for swimming in the lake is {x}.
person< I got a lift from the person I swim the lake with, {x}.
place? Where does the lake swimming group change its clothes?
place: We swimmers change clothes {x}, a brisk trot from the lake.
place: To get changed after the lake, our swimming group undresses {x}, clothes in a heap.
place< I left a sock where the lake swimming group changes clothes, {x}.
time? When will {name} swim across the whole lake?
time: I intend to swim across the whole lake {x}.
time: The swim across the lake, the whole width, is set: {x}.
time< I'm building up to crossing the whole lake, a swim I'll do {x}.
thing? What does {name} bring to sit on after the lake swim?
thing: After a swim I sit at the edge of the lake on {x}, wrapped like a parcel.
thing: The others sit on mats when the lake swim is done; I bring {x}.
thing< Somebody sat on it before me after the lake swim, I mean {x} that I bring along.
liking? What has {name} grown fond of through lake swimming?
liking: Through swimming in the lake I've grown fond of {x}.
liking: You'd think it was the lake, but what I've grown fond of in swimming is {x}.
liking< It's like lake swimming, in which I've grown fond of {x}.
"""
"""Six threads."""
