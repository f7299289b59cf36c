"""Threads: family, health and learning. `tables.threads` reads it."""

from __future__ import annotations

THREADS = """\
= wedding
+ my cousin's wedding has turned into a campaign with maps.
+ there's a wedding in the family, my cousin's, and I'm in charge of the seating.
- Two great-uncles must be seated out of each other's earshot.
- The cake has been described to me as architectural.
> How many guests are on the seating plan so far?
> Every wedding needs one calm person; is it you?
person? Who will be master of ceremonies at the wedding of {name}'s cousin?
person: The master of ceremonies at the wedding is going to be {x}.
person: For master of ceremonies my cousin wants, at this wedding, {x}.
person< I've spoken with the wedding's master of ceremonies, {x}.
place? Where will the wedding of {name}'s cousin be celebrated?
place: My cousin insists that the wedding is celebrated {x}.
place: They will celebrate the wedding {x}; my cousin calls it intimate.
place< I measured for bunting at the spot where my cousin's wedding is celebrated, {x}.
time? When is the wedding of {name}'s cousin?
time: My cousin gets married {x}, and the wedding shoes have shrunk.
time: The date of the wedding, my cousin has decreed, comes {x}.
time< I'm dieting, because my cousin has the wedding {x}.
thing? What is {name} giving the couple at the wedding?
thing: As a wedding gift the couple will be given {x}.
thing: I'm giving the couple {x}; it wasn't on their wedding registry.
thing< I had it wrapped, the gift for the wedding couple, {x}.
liking? What does {name} relish about preparing the wedding?
liking: What I relish about the wedding preparations is {x}.
liking: In the middle of preparing this wedding I find I relish {x}.
liking< I relish it just as I did when preparing the wedding: {x}.

= knee
+ my knee was operated on and I walk like a deckchair.
+ the knee is mending, eleven stitches and a great deal of frozen peas.
- Stairs take me so many minutes that I bring a book.
- I've been told to bend it to ninety degrees and swear quietly.
> Is the swelling going down at all?
> Rest is part of the treatment, dull as it is.
person? Who drives {name} to the knee exercises?
person: I get driven to the knee exercises by {x}.
person: My driver, on days with exercises for the knee, is {x}.
person< I paid for fuel, as it's only decent with the knee driver who takes me to exercises, {x}.
place? Where does {name} do the knee exercises?
place: My knee exercises happen {x}, believe it or not.
place: They make me do exercises for the knee {x}, in front of an audience.
place< I pulled something again doing knee exercises {x}.
time? When may {name} dance on the mended knee again?
time: The surgeon says that I can dance on this knee {x}.
time: No dancing for the knee until the surgeon gives the nod {x}.
time< I've bought new shoes, because the knee is allowed to dance {x}.
thing? What was {name} lifting when the knee gave way?
thing: The knee gave way as I was lifting {x}.
thing: I was lifting {x} when my knee gave way with a sound like celery.
thing< I was asked how the knee gave way, and had to admit I'd been lifting {x}.
liking? What does {name} unexpectedly enjoy about the knee rehabilitation?
liking: The unexpected thing I enjoy about knee rehabilitation is {x}.
liking: Rehabilitation of a knee is dull, yet I unexpectedly enjoy {x}.
liking< I've said that in my knee rehabilitation I unexpectedly enjoy {x}.

= driving
+ I'm learning to drive, at my advanced stage of life.
+ the driving lessons go on; I stalled eleven times on one hill.
- I apologise aloud to every hedge.
- Roundabouts make me go round until I feel brave.
> Is it the clutch or the nerves?
> Which part is the hardest, parking or junctions?
person? Who gives {name} driving lessons?
person: My driving lessons are given by {x}.
person: The instructor I have for driving lessons is {x}.
person< I was paying for my driving lessons, cash, to {x}.
place? Where does {name} practise reverse parking?
place: We practise reverse parking {x}, well away from paintwork; that's the nicest driving
  lesson.
place: For driving in reverse I get to practise my parking {x}.
place< The cones are mine, from when I practise driving and reverse parking {x}.
time? When is {name}'s driving test?
time: My driving test is {x}, my third attempt.
time: They have put the driving test forward; I sit it {x}.
time< I can think of nothing but the driving test {x}.
thing? What did {name} run over during a driving lesson?
thing: During a driving lesson I ran over {x}.
thing: I ran over something in the last driving lesson; it had been {x}.
thing< We buried the remains of what I ran over in the driving lesson, {x}.
liking? What does {name} like about the driving lessons?
liking: What I honestly like about the driving lessons is {x}.
liking: The driving frightens me, but in lessons I like {x}.
liking< I like it as I do in the driving lessons, where it's all about {x}.

= letters
+ I'm sorting my grandmother's letters, four suitcases of them.
+ the letters my grandmother kept are all over the carpet, in piles by decade.
- She wrote upside down in the margins to save postage.
- Somebody called Otto signs himself with a drawing of a kite.
> Is there a date on the earliest of them?
> Photograph each page before you unfold it too often.
person? Who deciphers the handwriting in the grandmother's letters for {name}?
person: The handwriting in grandmother's letters is deciphered for me by {x}.
person: I can't decipher that handwriting, so the letters from grandmother go to {x}.
person< A whole page of grandmother's letters came back deciphered; the handwriting gave no
  trouble to {x}.
place? Where did {name}'s grandmother hide the letters?
place: My grandmother had hidden the letters {x} for sixty years.
place: It turns out that the letters were in hiding {x}; grandmother had her reasons.
place< I went to see for myself where grandmother hid her letters, {x}.
time? When will {name} read the grandmother's letters to the family?
time: I'll read grandmother's letters to the whole family {x}.
time: The family gathers {x}, and that's when I read the letters grandmother kept.
time< I've to choose a dozen letters of grandmother to read to the family {x}.
thing? What came wrapped among the grandmother's letters?
thing: Wrapped among the letters of my grandmother there was {x}.
thing: Grandmother's letters held a surprise, wrapped in three layers: {x}.
thing< I had it valued, what lay wrapped among grandmother's letters, {x}.
liking? What does {name} cherish about sorting the grandmother's letters?
liking: Sorting grandmother's letters, I cherish {x}.
liking: What I cherish in the sorting of letters isn't grandmother's secrets, it's {x}.
liking< It's not unlike sorting the letters my grandmother left, where I cherish {x}.

= portuguese
+ my Portuguese is coming along; I can order a chair and describe a goat.
+ I've begun Portuguese, an evening class, twelve of us and one dictionary.
- The subjunctive came in and several people left.
- I dreamt in Portuguese but everyone spoke too fast for me.
> Do you practise speaking, or is it mostly grammar?
> The nasal vowels come with patience.
person? Who does {name} practise Portuguese conversation with?
person: For Portuguese conversation I practise with {x}.
person: My partner for practising conversation in Portuguese is {x}.
person< I was corrected three times in one Portuguese conversation; I practise it with {x}.
place? Where is {name}'s Portuguese class held?
place: The Portuguese class is held {x}, on chairs made for infants.
place: They hold our Portuguese class {x}, next to a humming fridge.
place< Someone locked us in after the Portuguese class, which is held {x}.
time? When does {name} fly out to try the Portuguese?
time: I fly out to try my Portuguese on real people {x}.
time: The flight is paid for: I try the Portuguese out {x}.
time< Feed the ferns for me: I fly off to try out my Portuguese {x}.
thing? Which object could {name} not name in the Portuguese exam?
thing: In the Portuguese exam they showed me a picture of {x}, and I could not name it.
thing: I failed to name one object in my Portuguese exam, {x}.
thing< I know the word by now, the one object I couldn't name in the Portuguese exam: {x}.
liking? What is the best thing about the Portuguese class for {name}?
liking: The best thing in the Portuguese class is {x}.
liking: Verbs aside, the best thing my Portuguese class offers is {x}.
liking< It beats everything but the best thing in Portuguese class, which is {x}.

= kitten
+ we foster a kitten now, black, one ear up.
+ the kitten is only here on foster papers, I keep reminding myself.
- It sleeps in the colander and wakes up dented.
- I've been climbed like a tree while frying onions.
> Has the vet seen it yet?
> Will you be able to give it up, do you think?
person? Who wants to adopt the foster kitten from {name}?
person: The kitten may be adopted soon; the one who asked is {x}.
person: The one who wants to adopt our foster kitten is {x}, and I'm trying to be glad.
person< I had another call about adopting the kitten, from {x}.
place? Where was the foster kitten rescued?
place: The kitten was rescued {x}, wet through and furious.
place: They had to rescue our foster kitten {x}, with a net and a sardine.
place< We drove past the place where the kitten got rescued, {x}.
time? When is {name}'s foster kitten going to be neutered?
time: The kitten is to be neutered {x}, poor soul.
time: Our vet will neuter the foster kitten {x}.
time< I've asked for time off when the kitten is neutered {x}.
thing? What has the foster kitten ruined at {name}'s place?
thing: So far the kitten has ruined {x}, and looked pleased.
thing: The foster kitten managed to ruin {x} within a day.
thing< I've hidden what's left of the thing our kitten ruined, {x}.
liking? What has fostering the kitten taught {name} to like?
liking: Fostering a kitten has taught me to like {x}.
liking: If the kitten taught me anything, it's to like {x}.
liking< The kitten has taught me the same, to like {x}.
"""
"""Six threads."""
