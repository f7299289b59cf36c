"""Threads: things made by hand. `tables.threads` reads it."""

from __future__ import annotations

THREADS = """\
= pottery
+ pottery has taken over; there are eleven lopsided jugs drying on the bookcase.
+ I've signed on for pottery and can now make one shape, which is ashtray.
- My glaze came out the green of pond life, which I'm calling a choice.
- Centring the clay feels like arguing with a pudding.
> Is the wheel electric or do you kick it?
> What are you hoping to make once the basics sit?
person? Who is the other owner of {name}'s pottery kiln?
person: For the pottery I bought a kiln, and its other owner is {x}.
person: The kiln isn't mine alone: pottery bills get halved, and my co-owner is {x}.
person< Something of mine exploded and hit pottery that belongs to my co-owner of the kiln, {x}.
place? Where does {name} sell the pottery?
place: I've begun to sell my pottery {x}, at insulting prices.
place: They let me sell pottery from a trestle {x}.
place< Two mugs sold today; I sell the pottery {x}, if you recall.
time? When is the exhibition of {name}'s pottery?
time: Some of my pottery goes into an exhibition {x}.
time: There's an exhibition of our pottery {x}, wine included.
time< I'm glazing like mad since the pottery exhibition is {x}.
thing? What is {name} trying to imitate in pottery?
thing: My current folly is to imitate an heirloom in pottery: {x}.
thing: In pottery you imitate what's at home, and I'm trying that with {x}.
thing< My attempt in pottery to imitate {x} collapsed again.
liking? What does {name} value most about pottery?
liking: What I value most about pottery is {x}.
liking: I make ugly pots, but pottery gives me what I value most, {x}.
liking< It's the reason I value pottery the most too: {x}.

= quilt
+ the quilt is growing; it now covers the sofa and one cat.
+ I'm sewing a quilt from everybody's worn shirts, with permission mostly.
- I've sewn my own sleeve into it twice.
- The pattern is called Drunkard's Path and I follow it faithfully.
> Are you piecing it by machine?
> How many squares are left to do?
person? Who is {name}'s quilt meant for?
person: The quilt is meant for {x}, though it's a secret.
person: I never said who this quilt was meant for: it's {x}.
person< I nearly let it slip to the person my quilt is meant for, {x}.
place? Where does {name}'s quilting group meet?
place: Our quilting group meets {x}, around one enormous frame.
place: We meet as a group {x}, eight of us and a quilt the size of a field.
place< I had thread all over me, coming from where the quilt group meets, {x}.
time? When does {name} want to present the finished quilt?
time: I want the quilt finished and presented {x}.
time: The quilt must be ready to present {x}, borders and everything.
time< I unpicked a whole row though I'm due to present the quilt {x}.
thing? Which object is stitched in the middle of {name}'s quilt?
thing: In the middle of the quilt I've stitched a picture of {x}.
thing: The middle square of my quilt, stitched in seven colours, shows {x}.
thing< Somebody mistook the middle of the quilt for a cow; I'd stitched {x}.
liking? What makes the quilting evenings worthwhile for {name}?
liking: What makes those quilting evenings worthwhile is {x}.
liking: A quilt takes years, but the evenings are worthwhile because of one thing, {x}.
liking< As on the quilt evenings, it was made worthwhile by {x}.

= dinghy
+ I have bought a dinghy, eleven feet of optimism and rot.
+ the dinghy is upside down on two trestles and I'm sanding it in my lunch hours.
- There's a plank near the bow you can put a thumb through.
- I've inhaled enough dust to be varnished from inside.
> Is it the planking or only the paint that has to go?
> Wear a mask when you sand the old paint, please.
person? Who helps {name} repair the dinghy?
person: I'd be lost with the dinghy repairs if I weren't helped by {x}.
person: Helping me repair the dinghy is {x}, who owns a proper plane.
person< I owe a dinner to my helper in the dinghy repairs, {x}.
place? Where is {name}'s dinghy stored during the repairs?
place: During repairs the dinghy is stored {x}.
place: There was no space anywhere, so I store the dinghy {x} while I repair it.
place< I smelled of varnish all day, having been where the dinghy is stored for repair, {x}.
time? When will {name} launch the dinghy?
time: I'm going to launch the dinghy {x}, with a modest speech.
time: The launch of my dinghy has slipped again, and now it comes {x}.
time< You're all invited to see the dinghy launched {x}.
thing? What did {name} trade in for the dinghy?
thing: No money changed owners for the dinghy; I traded in {x}.
thing: To get the dinghy I had to trade in {x}, and I miss it already.
thing< I caught sight of what I traded in for my dinghy, {x}, in somebody's porch.
liking? What does {name} find soothing about working on the dinghy?
liking: The soothing side of the dinghy is {x}.
liking: There's something soothing about the dinghy, and I think it's {x}.
liking< I told somebody what I find soothing about the dinghy, {x}.

= breadoven
+ we are building a bread oven out of bricks that used to be a chimney.
+ the bread oven in the communal garden is up to its collar.
- The dome collapsed once, politely, while we were having lunch.
- I carried two hundred bricks and named the heaviest.
> How thick is the insulation layer under the dome?
> Let it dry for a few weeks before the first real heat.
person? Who designed the bread oven that {name} is building?
person: The bread oven was designed by {x}, on the back of an invoice.
person: Our designer for the bread oven, unpaid, is {x}.
person< I asked the designer of the bread oven, {x}, about the draught.
place? Where did the bricks for {name}'s bread oven come from?
place: The bricks for the bread oven had been stacked {x}, free to whoever had a van.
place: We got all our bread oven bricks from a heap {x}.
place< I went to look for more oven bricks where the first came from, bread-coloured ones, {x}.
time? When will the first loaf come out of {name}'s bread oven?
time: The first loaf ought to come out of the bread oven {x}.
time: We've agreed that the bread oven gets its first loaf {x}.
time< Everybody wants to know about that first loaf; the bread oven delivers it {x}.
thing? What was walled into the bread oven for luck?
thing: For luck we walled {x} into the back of the bread oven.
thing: The bread oven has something walled in for luck, namely {x}.
thing< I dreamt of what we walled into our bread oven for luck, {x}.
liking? What has {name} discovered to love while building the bread oven?
liking: Building the bread oven, I discovered that I love {x}.
liking: My discovery from the bread oven is that I love {x}.
liking< It's my discovery from the bread oven all over again: I love {x}.

= railway
+ the model railway has outgrown its table and is heading for the wardrobe.
+ I build a model railway, scale one to eighty-seven, and I won't apologise.
- There's a plastic goat on the embankment which gets moved by persons unknown.
- The points by the sawmill stick whenever anyone is watching.
> Is it digital control, or the old knobs?
> Which country does the landscape belong to?
person? Who paints the figures for {name}'s model railway?
person: The figures on the model railway are painted by {x}.
person: For my railway somebody paints all the model figures, and it's {x}.
person< Six new figures came for the model railway, from the painter, {x}.
place? Where does {name}'s model railway club run its trains?
place: Our club runs the model railway trains {x}, on forty folding tables.
place: The railway club has its model trains running {x}, past a papier-mâché alp.
place< I missed my lift to the model railway club, which runs trains {x}.
time? When will {name}'s model railway be shown to the public?
time: The public gets to see the model railway {x}.
time: We show the model railway to the public {x}, and children will lean on it.
time< I've still to wire a bridge; the railway model is on public show {x}.
thing? What hides the wiring of {name}'s model railway?
thing: To hide the wiring of the model railway I use {x}.
thing: The railway's wiring was an eyesore until the model got a place to hide it, behind {x}.
thing< Guests stare at the thing that hides my model railway wiring, {x}.
liking? What pleases {name} most about the model railway?
liking: What pleases me most about the model railway is {x}.
liking: People suspect it's the trains, but with a model railway I'm pleased most by {x}.
liking< The model railway pleases me most for the same reason: {x}.

= puppets
+ I make puppets, since you ask what the papier-mâché is for.
+ the puppets are multiplying; there's a bishop drying on the radiator.
- The crocodile bites on its left side only.
- I cast my own nose for the burglar and nobody has noticed.
> How many characters does the story need?
> Do you do all the voices yourself?
person? Who sews the costumes for {name}'s puppets?
person: All my puppets have costumes sewn by {x}.
person: The costumes come from {x}, who can sew for puppets in the dark.
person< I dropped off two naked puppets with the person who sews costumes, {x}.
place? Where does {name} perform with the puppets?
place: I perform with the puppets {x}, from inside a striped box.
place: My puppets get to perform {x}, to about thirty children and a drunk.
place< I was dragging the puppets to where we perform, {x}, when the strap broke.
time? When does {name} take the puppets to the festival?
time: The puppets are invited to a festival {x}.
time: There's a festival for puppets and I take mine there {x}.
time< I must repaint the burglar before the puppets' festival {x}.
thing? What did {name} cut up to make the king puppet?
thing: For the king, I had to cut up {x}; puppets need grand materials.
thing: The king among my puppets was once {x}, which I cut up with a clear conscience.
thing< Somebody asked after the thing I'd cut up for the king of the puppets, {x}.
liking? What does {name} adore about the puppet afternoons?
liking: What I adore about the puppet afternoons is {x}.
liking: Puppet afternoons are chaos, and what I adore in them is {x}.
liking< It felt like the puppet afternoons, in which I adore {x}.
"""
"""Six threads."""
