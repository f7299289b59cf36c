"""What the facts are about: options, and two other ways to tell each of them."""

from __future__ import annotations

VALUES = """\
= place
the customs yard
  in a yard on the quay, laid out for customs men
  down by the quay, where customs carts once filled the yard
a disused cinema
  in what used to be the cinema, disused since the flood
  inside a cinema that has stood disused for eleven years
the chapel basement
  in the basement, directly below the chapel
  under the chapel floor, in a basement with painted pipes
a ferry terminal
  at the terminal, in the corner where they queue for the ferry
  upstairs from the ferry desk, at the far end of the terminal
the tram depot
  at the depot, between two parked tram cars
  behind the last tram shelter, inside the depot
a school gymnasium
  in a gymnasium lent to us by the primary school
  in the part of the school that holds the gymnasium
the fire station
  at the station, in the bay meant for a second fire engine
  right above the fire crew, on the top floor of the station
a launderette mezzanine
  up on the mezzanine of the launderette, dryers humming below
  in a launderette, on the iron mezzanine nobody notices
the pilgrim hostel
  at a hostel meant for the pilgrim trail
  in the hostel, where a pilgrim now and then asks for a key
an empty greenhouse
  inside a greenhouse that has been empty for years
  in the empty half of somebody else's greenhouse
the church belfry
  in the belfry, ninety steps above the church door
  up where the church keeps its bells, in the belfry
a bowling alley
  in an alley with the bowling lanes boarded over
  at the alley, on the lane nearest the bowling shoes
the museum cloakroom
  in the cloakroom of our poky museum
  behind the museum desk, in a cloakroom full of umbrellas
a canal barge
  aboard a barge moored along the canal
  on the canal, in the belly of a barge
the seed warehouse
  in a warehouse that smells of seed and sacking
  at the seed merchant's place, in the lower warehouse
a hotel lobby
  in the lobby of that pink hotel
  under the hotel chandelier, right there in the lobby
the quarry office
  in an office at the mouth of the quarry
  out by the quarry, in a corrugated office
a cheese cellar
  down in the cellar under the cheese counter
  among the ripening cheese, in a vaulted cellar
the courthouse attic
  in the attic, three floors over the courthouse steps
  up at the courthouse, in a pigeon-haunted attic
a petrol forecourt
  on the forecourt, beside the petrol pumps
  where they sell petrol, out on the forecourt
the orchard shed
  in a shed at the bottom of the orchard
  among the orchard trees, in a shed with one socket
a hospital canteen
  in the canteen of the hospital
  at the hospital, once the canteen shuts

= person
a retired postman
  a postman, retired since spring and bored with it
  the man who was our postman and retired with a medal
a Danish violinist
  a violinist, Danish, in enormous boots
  somebody from the Danish community, a violinist by trade
a young locksmith
  a locksmith, surprisingly young
  a locksmith so young I took him for an apprentice
a former judge
  a judge, or at any rate a former one
  a woman who sat as judge in some former life
the bus inspector
  an inspector I know from the bus
  the inspector who checks tickets on my bus
a Brazilian student
  a student over from a Brazilian college
  a student lodging across the landing, Brazilian and never punctual
a bearded plumber
  a plumber, bearded down to the belt
  the plumber, that bearded fellow who hums
a blind pianist
  a pianist who has been blind since birth
  the pianist from the arcade, who is blind
the parish librarian
  the librarian who looks after our parish shelves
  a librarian, the one employed by the parish
an army cook
  a cook, ex army
  a man who used to cook for the army
a divorced magician
  a magician, recently divorced
  a magician I met while he was getting divorced
an elderly stonemason
  a stonemason, elderly but quick
  a stonemason my father knew, elderly by now
a Scottish midwife
  a midwife with a Scottish accent
  the midwife who delivered half of us, Scottish to the bone
the village optician
  an optician from the next village
  the optician, the last one left in any village hereabouts
a shy architect
  an architect who is painfully shy
  an architect, so shy that a letter came instead of a call
a football referee
  a referee from amateur football
  somebody who is a referee at football and shouts like one
a tax accountant
  an accountant who does tax for half of the road
  my accountant, of all people, in the thick of tax returns
a Korean tailor
  a tailor, Korean and very exact
  a tailor trained by some Korean uncle
a truck mechanic
  a mechanic who mostly sees the underside of a truck
  the mechanic from the truck garage
a prison chaplain
  a chaplain who serves at the prison
  the chaplain from our prison on the hill
a gloomy barber
  a barber, gloomy as a wet flag
  my barber, gloomy on principle

= time
a Tuesday in March
  in March, on the driest Tuesday we get
  one Tuesday, probably with March nearly over
the October holidays
  during the holidays that fall in October
  in October, as soon as holidays begin
midsummer eve
  on the eve of midsummer
  at midsummer, most likely on the eve itself
a Sunday in Advent
  in Advent, on the second Sunday
  some Sunday between candles two and three of Advent
the Easter weekend
  over the weekend that Easter falls on
  at Easter, across the whole weekend
a Friday in February
  in February, some Friday or other
  one Friday towards the end of February
the August fair
  in August, during the fair
  while the fair is here, so August
the harvest moon
  with the moon full and the harvest brought in
  at full moon, right behind the harvest
a Monday in November
  in November, on the second Monday
  one Monday of a grey November
the council elections
  straight after the elections for the council
  once elections are over and the new council has met
the winter solstice
  on the solstice, meaning the winter one
  at the solstice, the darkest evening that winter has
a Thursday in June
  in June, on a Thursday
  one Thursday around the middle of June
the January sales
  in January, while sales are on
  once the sales begin, which means January
the carnival parade
  at carnival, once the parade has gone by
  when the parade is over, with carnival confetti everywhere
a Wednesday in September
  in September, on the last Wednesday
  some Wednesday, quite early in September
a Saturday in July
  in July, on the third Saturday
  one Saturday, not sooner than July
the lunar eclipse
  during the eclipse, the lunar one
  the same night as the eclipse, a lunar one this year
the mayor's birthday
  on the birthday we all know by heart, the mayor's
  when it's the mayor's turn to have a birthday

= thing
a brass lantern
  a lantern made from melted brass taps
  a lantern, solid brass under the soot
a walnut sideboard
  a sideboard in plain walnut
  a sideboard, walnut, heavy as a calf
a velvet curtain
  a curtain cut from green velvet
  a curtain, velvet and full of moths
a copper kettle
  a kettle in dented copper
  a kettle that turned out to be copper
a rope ladder
  a ladder knotted out of rope
  a ladder, the rope kind that swings
a marble pestle
  a pestle in grey marble
  a pestle, real marble and heavy as sin
a wool blanket
  a blanket woven from undyed wool
  a blanket, pure wool, the itchy sort
a glass decanter
  a decanter blown from smoky glass
  a decanter, its glass as thin as ice
a leather satchel
  a satchel of cracked leather
  a satchel, leather, with initials not ours
an enamel basin
  a basin with chipped enamel
  a basin, white enamel with a blue rim
a bamboo screen
  a screen slatted with bamboo
  a folding screen, bamboo I believe
a silver whistle
  a whistle in tarnished silver
  a whistle, silver by its hallmark
a wicker pram
  a pram plaited from wicker
  a pram, wicker, one wheel short
a cuckoo clock
  a clock complete with cuckoo
  a clock whose cuckoo has lost its voice
a paraffin stove
  a stove that runs on paraffin
  a stove, paraffin, frankly terrifying
a straw hat
  a hat plaited out of straw
  a hat, straw with a cherry ribbon
a linen tablecloth
  a tablecloth of thick linen
  a tablecloth, linen, ironed for the occasion
a tin trumpet
  a trumpet stamped out of tin
  a trumpet, tin, missing one valve
a porcelain owl
  an owl in cracked porcelain
  an owl, porcelain, with a chip in one ear
a cedar chest
  a chest that still smells of cedar
  a chest, cedar inside and out

= liking
the comfortable silences
  silences, and how comfortable they become
  having silences that feel comfortable instead of rude
numb fingers
  fingers so numb that you laugh
  going to bed with fingers gone numb
the gossip afterwards
  knowing that afterwards comes gossip
  what comes afterwards, an hour of shameless gossip
the dawn bustle
  a certain bustle at dawn
  being part of the bustle when dawn has barely come
the shared thermos
  a thermos, shared round without anyone asking
  drinking from a thermos that simply gets shared
the terrible jokes
  jokes so terrible they deserve a fine
  hearing jokes, each more terrible than the last
the glacial progress
  progress that is frankly glacial
  seeing progress come at a glacial pace
the strict routine
  a routine, and a strict one at that
  having a routine kept as strict as a timetable
the friendly strangers
  strangers who turn out friendly
  how strangers become friendly within an hour
aching shoulders
  shoulders that are still aching at breakfast
  waking with both shoulders properly aching
handwritten lists
  lists, proper ones, handwritten in pencil
  ticking off lists that somebody left me, all handwritten
the borrowed tools
  tools, and the fact that each one is borrowed
  working with tools I have borrowed and must give back
the sweet tea
  tea so sweet it makes your teeth ring
  getting tea at the end, sweet as syrup
the steady rhythm
  a rhythm, steady enough to think by
  finding the rhythm and holding it steady
harmless mistakes
  mistakes that stay harmless and get laughed at
  making mistakes that are perfectly harmless
the mixed ages
  ages all mixed, nine to ninety
  having people of all ages get mixed up together
the ban on phones
  knowing that phones fall under a ban
  seeing phones in a basket, the ban being absolute
the polite rivalry
  a rivalry so polite it hurts
  noticing how rivalry stays polite to the very end
the printed certificates
  certificates, printed and stamped for everything
  collecting certificates that somebody printed for a laugh
"""
"""By type: the option, then its tellings, indented."""
