"""The 80 object classes of COCO, and what people call them in captions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from symbal_hf.language.phrases import Vocabulary

# One class a line: its name, then other names for it. A name that could as well mean something else ("glass",
# "plant", "screen") stands here when captions mostly mean the class by it, since the list decides where an error may
# be planted: a free row too few does no harm, a planted sentence that is true would.
_CLASSES = """
person: man, woman, boy, girl, child, kid, baby, infant, toddler, guy, lady, gentleman, gal, dude, adult, teenager, teen, youth, people, someone, somebody, human, male, female, crowd, audience, spectator, family, couple, pedestrian, passenger, commuter, rider, biker, bicyclist, cyclist, motorcyclist, driver, skier, snowboarder, skater, skateboarder, surfer, swimmer, player, batter, pitcher, catcher, umpire, referee, athlete, runner, jockey, hitter, teammate, team, baseball team, soccer team, goalie, tourist, traveler, traveller, hiker, worker, businessman, businesswoman, chef, cook, baker, waiter, waitress, bartender, customer, shopper, vendor, farmer, fisherman, fireman, firefighter, policeman, police officer, cop, officer, soldier, guard, sailor, pilot, doctor, nurse, dentist, patient, student, teacher, bride, groom, mother, father, mom, dad, parent, son, daughter, brother, sister, husband, wife, grandmother, grandfather, friend, cowboy, clown, monk, nun, priest, hipster, musician, photographer, bystander, onlooker, figure, trainer, handler, owner, shepherd, herder, lad
bicycle: bike, cycle, push bike, tricycle, trike, mountain bike, tandem, ten speed
car: automobile, sedan, taxi, cab, taxicab, suv, minivan, van, convertible, hatchback, limousine, limo, jeep, vehicle, traffic, coupe, station wagon, sports car, race car, police car, parked car
motorcycle: motorbike, motor bike, motor cycle, scooter, moped, dirt bike, vespa, chopper, harley, motor scooter
airplane: plane, aeroplane, aircraft, jet, jetliner, airliner, jumbo jet, biplane, fighter jet, seaplane, jumbo, propeller plane, passenger jet
bus: double decker, school bus, coach bus, minibus, trolley bus, autobus, tour bus, doubledecker
train: locomotive, subway, tram, streetcar, trolley, freight train, steam engine, railcar, caboose, monorail, train car, passenger train, train engine
truck: pickup, pickup truck, pick up truck, lorry, semi, fire truck, firetruck, fire engine, dump truck, tow truck, tractor trailer, semi truck, big rig, garbage truck, food truck, trailer truck, eighteen wheeler
boat: ship, sailboat, sail boat, canoe, kayak, rowboat, row boat, yacht, ferry, motorboat, raft, vessel, gondola, dinghy, barge, speedboat, cruise ship, houseboat, catamaran, tugboat, paddle boat
traffic light: traffic signal, stop light, stoplight, street signal, traffic signal light, signal light
fire hydrant: hydrant, fireplug, fire plug, water hydrant
stop sign: stopsign
parking meter: meter, parking meter machine
bench: park bench, pew
bird: pheasant, sandpiper, blackbird, pigeon, seagull, gull, duck, goose, swan, parrot, owl, eagle, hawk, chicken, rooster, hen, turkey, ostrich, peacock, flamingo, penguin, crow, raven, sparrow, robin, finch, heron, pelican, stork, crane bird, parakeet, cockatoo, woodpecker, hummingbird, duckling, chick, dove, falcon, vulture, toucan, budgie, mallard, egret, cormorant, ibis, macaw, blue jay, cardinal, fowl, waterfowl, emu
cat: kitten, kitty, feline, tabby, tomcat, calico, siamese
dog: puppy, pup, hound, poodle, labrador, beagle, bulldog, terrier, dachshund, canine, chihuahua, retriever, german shepherd, collie, corgi, pug, mutt, dalmatian, husky, greyhound, doberman, sheepdog, boxer dog, spaniel, schnauzer, rottweiler, doggie, doggy, shih tzu, pit bull
horse: pony, foal, stallion, mare, colt, mustang, bronco, filly, gelding, racehorse, thoroughbred
sheep: lamb, ewe, ram, livestock
cow: cattle, bull, calf, ox, oxen, steer, heifer, bovine, longhorn, herd of cattle, livestock animal, buffalo, bison
elephant: pachyderm, mammoth
bear: grizzly, polar bear, grizzly bear, brown bear, black bear, panda, panda bear, bear cub, cub
zebra: zebra foal
giraffe: giraffe calf, baby giraffe
backpack: rucksack, knapsack, back pack, book bag, bookbag
umbrella: parasol, sunshade, beach umbrella
handbag: purse, hand bag, shoulder bag, tote, tote bag, pocketbook, satchel, messenger bag
tie: necktie, bow tie, bowtie, neck tie
suitcase: luggage, suit case, baggage, carry on, duffel bag, travel bag, briefcase
frisbee: flying disc, disc, frisbie, frizbee
skis: ski, ski equipment, cross country ski
snowboard: snow board
sports ball: ball, baseball, basketball, football, soccer ball, tennis ball, volleyball, softball, beach ball, golf ball, rugby ball, soccerball, kickball
kite: parasail, kite string
baseball bat: bat, ball bat
baseball glove: mitt, catcher mitt, baseball mitt, glove
skateboard: skate board, longboard
surfboard: surf board, paddle board, paddleboard, boogie board, body board, bodyboard, longboard surfboard
tennis racket: racket, racquet, tennis racquet, tennis raquet
bottle: wine bottle, beer bottle, water bottle, flask, bottled water, soda bottle, ketchup bottle
wine glass: wineglass, glass of wine, wine goblet, goblet, champagne glass, champagne flute, martini glass
cup: mug, teacup, coffee cup, tea cup, paper cup, coffee mug, tumbler, glass of water, glass of milk, glass of juice, cup of coffee, cup of tea
fork: silverware, cutlery, utensil, flatware, salad fork
knife: steak knife, butter knife, pocket knife, blade, butcher knife, chef knife, silverware knife
spoon: tablespoon, teaspoon, ladle, soup spoon, wooden spoon, serving spoon
bowl: salad bowl, soup bowl, mixing bowl, cereal bowl
banana: plantain, banana bunch
apple: green apple, red apple
sandwich: burger, hamburger, cheeseburger, sub, panini, wrap, blt, hoagie, grilled cheese, sub sandwich, gyro, club sandwich, quesadilla, burrito, slider, submarine sandwich
orange: tangerine, mandarin, clementine, orange slice, citrus
broccoli: brocoli, brocolli, broccolli, broccoli floret
carrot: carrot stick, baby carrot
hot dog: hotdog, frankfurter, chili dog, corn dog, wiener, bratwurst, corndog, chilli dog, sausage in a bun
pizza: pizza pie, pepperoni pizza, cheese pizza, slice of pizza, pizza slice, calzone, flatbread
donut: doughnut, donut hole, doughnut hole, cruller, glazed donut, bagel
cake: cupcake, birthday cake, wedding cake, cheesecake, cheese cake, layer cake, shortcake, pound cake, pastry, brownie, cake slice, pancake
chair: armchair, arm chair, stool, recliner, rocking chair, lounge chair, office chair, seat, bar stool, barstool, highchair, high chair, beach chair, lawn chair, folding chair, wheelchair, wheel chair, throne, lounger, desk chair, seating
couch: sofa, loveseat, love seat, settee, futon, sectional, divan, chaise
potted plant: houseplant, house plant, plant, pot plant, flower pot, flowerpot, fern, bonsai, cactus, planter, potted flower, vase plant, shrub, succulent
bed: bunk bed, bunkbed, mattress, cot, crib, bedding, bunk, hospital bed, twin bed, king size bed, queen size bed
dining table: table, kitchen table, dinner table, tabletop, table top, picnic table, desk, coffee table, dining room table, diningtable, end table, side table, wooden table, conference table
toilet: commode, urinal, lavatory, potty, bidet, toilet seat, latrine, toilet bowl, outhouse
tv: television, television set, tv set, flat screen, flatscreen, flat screen tv, tv screen, television screen, monitor, screen, telly, computer monitor, computer screen, flat screen television, plasma tv, display screen
laptop: notebook computer, laptop computer, macbook, netbook, computer, mac book
mouse: computer mouse, wireless mouse, mouse pad
remote: remote control, game controller, wii remote, controller, tv remote, wiimote, wii controller, video game controller, game remote, nintendo wii
keyboard: computer keyboard, keypad
cell phone: cellphone, mobile phone, smartphone, smart phone, phone, iphone, telephone, flip phone, camera phone, blackberry, cellular phone, cell
microwave: microwave oven
oven: stove, stovetop, stove top, range, cooker, toaster oven, gas stove, stove top oven, oven range, kitchen range, burner
toaster: bread toaster
sink: basin, washbasin, wash basin, kitchen sink, bathroom sink, faucet, washbowl, wash bowl, vanity, pedestal sink
refrigerator: fridge, freezer, icebox, frig, refridgerator, mini fridge
book: textbook, novel, paperback, notebook, magazine, hardback, cookbook, bookshelf, bookcase, comic book, reading material, library
clock: alarm clock, clock tower, wall clock, timepiece, grandfather clock, clock face, clocktower, wristwatch, sundial
vase: flower vase, urn, glass vase, pitcher of flower, jar of flower
scissors: shears, scissor, pair of scissors
teddy bear: stuffed bear, teddy, stuffed animal, stuffed toy, plush bear, plush toy, teddybear, plush animal, toy bear, doll
hair drier: hair dryer, blow dryer, blow drier, hairdryer, hairdrier, blowdryer
toothbrush: tooth brush, electric toothbrush
"""  # noqa: E501 - a class a line is how one reads and mends such a list

SYNONYMS: dict[str, tuple[str, ...]] = {
    name.strip(): tuple(other.strip() for other in others.split(","))
    for name, _, others in (line.partition(":") for line in _CLASSES.strip().splitlines())
}
COCO_NAMES: tuple[str, ...] = tuple(SYNONYMS)

# The official annotation ids run from 1 to 90 with gaps, in the order of the names above.
_UNUSED_IDS = frozenset((12, 26, 29, 30, 45, 66, 68, 69, 71, 83))
COCO_IDS: dict[int, str] = dict(
    zip((i for i in range(1, 91) if i not in _UNUSED_IDS), COCO_NAMES, strict=True),
)


def natural_vocabulary(names: Iterable[str]) -> Vocabulary:
    """A vocabulary of everyday objects: each name with all other names of the COCO class that it belongs to.

    Where several of `names` belong to one class ("car" and "van"), the class's own name takes the other names, and
    without it each counts by its own words alone; so does a name that no class has.
    """
    names = sorted(set(names))
    class_of = {other: name for name, others in SYNONYMS.items() for other in (*others, name)}
    class_of |= {name: name for name in SYNONYMS}
    members = Counter(class_of.get(name, name) for name in names)
    chosen: dict[str, tuple[str, ...]] = {}
    for name in names:
        group = class_of.get(name, name)
        heads = name == group or members[group] == 1
        chosen[name] = tuple(s for s in (group, *SYNONYMS.get(group, ())) if s not in names) if heads else ()
    return Vocabulary(chosen)
