"""Who the people are: names, trades, places, all invented."""

from __future__ import annotations

CAST = """\
= job
lock-keeper | Harrow Lock | sluice duty
signal controller | the signal box | relay testing
lift engineer | the lift workshop | cable greasing
map engraver | the map bureau | contour checking
piano mover | the removals firm | crate loading
dental technician | the denture lab | mould casting
crane operator | the container port | ballast checks
pastry chef | the pastry kitchens | dough rolling
bookbinder | the bindery | spine gluing
veterinary nurse | the animal surgery | kennel rounds
court stenographer | the tribunal | transcript proofing
geologist | the core store | sample labelling
tunnel engineer | the tunnels bureau | leak reporting
forklift driver | the pallet works | pallet counting
airport de-icer | the airfield | runway gritting
call-centre supervisor | the call centre | complaint sorting
costume cleaner | the dry cleaners | stain removal
upholsterer | the upholstery works | webbing and tacking
land assessor | the land registry | boundary pegging
biology teacher | the college | exam marking
wind-turbine technician | the turbine farm | blade inspection
proofreader | the dictionary press | galley reading
lighthouse electrician | the beacon authority | bulb maintenance
perfume blender | the fragrance works | essence weighing
zoo nutritionist | the zoo | feed weighing
archive conservator | the county archive | mould brushing
ambulance dispatcher | the dispatch centre | log keeping
sugar-beet farmer | the beet farm | ditch clearing
coffin maker | the joinery | lid planing
chlorine chemist | the public baths | filter dosing
bell founder | the foundry | furnace watch
orthopaedic shoemaker | the shoe clinic | last carving
mushroom grower | the mushroom caves | spore tending
puzzle editor | the puzzle magazine | clue vetting
ski-lift attendant | the gondola | cabin sweeping

= name
Ines, Tobias, Marguerite, Anselm, Priya, Lorenz, Odette, Kwame, Sunniva, Dario, Yusuf, Hanneke,
Ottilie, Matteo, Fenna, Ignace, Rosalind, Bartek, Noor, Leocadia, Cormac, Zsofia, Emeka, Linnea,
Ruben, Thandiwe, Augustin, Mirela, Caspian, Dagny, Ephraim, Solveig, Joaquim, Wilhelmina, Tamar,
Piet, Eulalia, Haruki, Brigid, Stellan, Amara, Florian, Nadezhda, Gwilym

= other
Okon, Corrie, Dov, Nilufer, Ottokar, Ximena, Fatou, Emrys, Ludmila, Basil, Renske, Quentin,
Oonagh, Janusz, Mabel, Idris, Celeste, Viktor, Hedda, Rafiq, Leonie, Casimir, Tilda, Ambrose,
Sanna, Giacomo, Phoebe, Dragan, Isolde, Kenji, Merle, Absalom, Vesna, Clement, Ruta, Anatol, Juno,
Bertil

= boss
Mrs Oduya, Mr Lindqvist, Frau Kessel, Mr Abernathy, Mrs Vandervoort, Dr Pasternak, Ms Okafor, Mr
Tremblay, Mrs Szabo, Mr Castellane, Ms Brannigan, Dr Yilmaz, Mr Holloway, Mrs Eriksen, Ms
Delacroix, Mr Petrossian, Mrs Achterberg, Mr Mbeki, Ms Rautio, Dr Fennimore, Mr Gallowglass, Mrs
Iwasaki, Ms Thorne, Mr Bielski, Mrs Quarshie, Mr Ostrander, Ms Vukovic, Dr Ambrosini, Mr
Penhallow, Mrs Dragomir, Ms Kilbride, Mr Santangelo, Mrs Wexcombe, Dr Nakagawa, Mr Ruprecht, Ms
Amundsen

= pet
Bramble, Pickle, Admiral, Biscuit, Nettle, Tuppence, Mustard, Gravy, Professor, Dumpling, Socks,
Marmalade, Bandit, Pepper, Button, Clementine, Turnip, Waffle, Inky, Duchess, Gherkin, Rascal,
Truffle, Custard, Bosun, Pumpkin, Sooty, Noodle, Captain, Crumpet, Thistle, Sprocket, Parsnip,
Mango, Tinker, Bilberry

= street
Tanner Street, Gull Lane, Cooper Row, Candlemaker Steps, Orchid Terrace, Mill Hill, Salt Street,
Weaver Lane, Lime Crescent, Anchor Road, Dyer Street, Plum Court, Rookery Lane, Bishop Walk,
Fennel Street, Hollow Lane, Beacon Road, Saddler Row, Juniper Street, Sparrow Hill, Windmill Lane,
Ash Grove, Acorn Row, Gantry Road, Friar Lane, Mulberry Row, Ditch Street, Cobbler Hill, Larch
Avenue, Needle Lane, Glover Street, Hawthorn Close, Saffron Row, Drover Lane, Vinegar Lane,
Chandler Street

= town
Ostermoor, Vellingby, Saltcombe, Kestrelhope, Brackwater, Lindenau, Porthmere, Hollin Cross,
Aldersund, Marrowdale, Tarnwick, Corvane, Eskerby, Dunmarsh, Felsing, Quillport, Rothmere, Saint
Orrin, Thornlea, Umberfield, Wexholm, Yarrowgate, Zellbruck, Harksund, Inchmallow, Jorvale,
Kelmsby, Larkhithe, Mossley Bar, Northolme, Ottersby, Pellworth, Ravensey, Skarholt, Tidewell,
Varnaby

= landmark
Gallows Arch, the Corn Exchange, Fiddler Bridge, the Plague Column, Mariner Gate, the Old
Weighbridge, Lion Fountain, Hangman Stairs, the Drapers Hall, Mercy Gate, the Bandstand, Swan
Pump, the Butter Cross, King Stephen Oak, the Viaduct, Lepers Wall, the Crooked Obelisk, Barrel
Arcade, the Sundial, Queen Maud Statue, the Toll Bar, Raven Gate, the Dovecote, Hermit Rock, the
Guildhall, Smugglers Slip, the Iron Footbridge, Bull Ring, the Rotunda, Widow Gate, the Pillory,
Beggars Bush, the Brick Chimney, Abbot Weir, the Herring Stone, Minstrel Corner

= river
Esk, Marl, Tarrow, Ilm, Vone, Sabel, Wisp, Harrel, Lode, Meer, Tamble, Ossel, Brede, Corry, Yarl,
Nidder, Pell, Quern, Rhyme, Stour

= partner
husband Radu, brother Jonas, uncle Silvio, father Tarek, nephew Vasil, husband Fergus, husband
Davit, brother Kofi, uncle Benedek, father Aurelio, nephew Mordecai, husband Henrik, husband
Samir, brother Leander, uncle Bruno, father Malachy, nephew Ansgar, husband Torsten, wife Elspeth,
sister Mireille, aunt Petra, mother Agnes, niece Beatrix, wife Lubna, wife Ilse, sister Maren,
aunt Roswitha, mother Yara, niece Signe, wife Paloma, wife Chiara, sister Philippa, aunt Greta,
mother Annika, niece Xenia, wife Delphine
"""
"""Jobs as `trade | place of work | duty`; all else as lists with commas."""
