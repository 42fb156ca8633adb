"""Where the threshold of the judge `lite` comes from: the curve over pairs that its agreement is not measured on.

Two sources. The pairs below were written for this purpose, many of them so that the table of synonyms does not know
them, since only such pairs reach the embedding. And the 80 classes of COCO with their other names: names of different
classes are different things, so that every merge is an error; names of one class are often kinds ("poodle" and "dog"),
which the judge's policy calls different, so that of them only the share is shown.

    python scripts/train/tune_lite_judge.py                # the curve, and what the chosen threshold gets wrong
    python scripts/train/tune_lite_judge.py --form "{}"    # with names in another phrase
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np

from benchmark_builder.bases.coco_names import SYNONYMS
from symbal_hf.core.store import Store
from symbal_hf.matching import lite as judge_lite
from symbal_hf.matching.lite import LiteJudge

SAME = """
sofa | couches
hoodie | hooded sweatshirt
cooler | ice chest
doorway | door frame
spatula | kitchen spatula
bandana | bandanna
flashlight | torch light
garden hose | water hose
hair tie | hair elastic
corkboard | cork board
jug | pitcher jug
bulldozer | bull dozer
sled | sledge
dustpan | dust pan
whiteboard | dry erase board
chandelier | hanging crystal chandelier
coat rack | coat stand
wind chime | wind chimes
fire extinguisher | red fire extinguisher
birdhouse | bird house
cowboy hat | stetson hat
life jacket | life vest
oar | paddle oar
hammock | a hammock
doormat | welcome mat
shopping bag | shopping bags
power line | power lines
utility pole | telephone pole
birthday candle | birthday candles
raincoat | rain jacket
sign post | signpost
ski pole | ski stick
bread roll | dinner roll
gift | wrapped present
police car | police cruiser
ambulance | ambulance vehicle
cargo ship | freighter ship
hot air balloon | hot-air balloons
construction crane | building crane
manhole cover | manhole lid
traffic cone | road cone
paper towel | paper towels
soap dispenser | soap pump dispenser
lipstick | lip stick
telescope | optical telescope
dollhouse | doll's house
marina | boat harbor
vegetables | veggies
mashed potatoes | mashed potato
noodles | pasta noodles
a herd of sheep | sheep
two zebras | zebra
yellow school bus | school bus
old wooden bench | bench
a flock of birds | birds
tall giraffe | giraffe
striped umbrella | umbrella
a stack of books | books
sleeping cat | cat
shiny black motorcycle | motorcycle
dining tables | dinner table
man on a skateboard | man
motorbikes | motorcycle
aeroplane | airplane
doughnuts | donut
television set | tv
soda can | can of soda
pitched roof | sloped roof
bilateral pleural effusions | pleural effusion
trace effusion | pleural effusion
moderate cardiomegaly | cardiomegaly
stable pulmonary oedema | pulmonary edema
left basilar atelectasis | atelectasis
heart is enlarged | cardiomegaly
endotracheal tubes | ETT
left chest tube | chest tube
pulmonary nodules | lung nodule
right apical pneumothorax | pneumothorax
sternotomy wires | sternal wires
calcified lymph node | lymph node calcification
calcified nodes | calcified lymph nodes
pleural scarring | pleural scar
apical scarring | scarring at the apex
reticular opacities | reticular pattern
ground glass opacity | ground-glass opacification
miliary nodules | miliary pattern
humeral fracture | fracture of the humerus
diaphragmatic hernia | hernia of the diaphragm
pulmonary hypertension | pulmonary arterial hypertension
mediastinal mass | mass in the mediastinum
cardiac pacemaker | pacemaker device
aspiration pneumonia | pneumonia from aspiration
pulmonary embolism | pulmonary embolus
surgical sutures | suture material
air fluid level | air-fluid levels
coronary calcification | coronary artery calcification
loop recorder | implantable loop recorder
pneumonectomy | lung removal
hilar mass | mass at the hilum
shoulder dislocation | dislocated shoulder
lung abscess | pulmonary abscess
gastric distension | distended stomach
bowel gas | intestinal gas
pulmonary contusion | lung contusion
"""

DIFFERENT = """
couch | armchair
hoodie | raincoat
flashlight | lantern
spatula | whisk
helicopter | airplane
tractor | truck
canoe | kayak
goat | sheep
wolf | dog
tiger | lion
zebra | horse
giraffe | elephant
pear | apple
lemon | orange
strawberry | raspberry
cauliflower | broccoli
bagel | donut
muffin | cupcake
pie | cake
taco | burrito
mug | wine glass
plate | bowl
blender | toaster
dishwasher | washing machine
oven | microwave
sink | bathtub
keyboard | piano keyboard
laptop | tablet
computer | keyboard
printer | scanner
mouse pad | computer mouse
lamp | candle
door | window
ceiling | floor
pillow | blanket
necklace | bracelet
hat | helmet
glove | baseball glove
shirt | jacket
scarf | tie
snowboard | skateboard
tennis racket | badminton racket
baseball | baseball bat
soccer ball | basketball
golf ball | tennis ball
train | bus
police car | police officer
fire truck | firefighter
bicycle | tricycle
stop sign | traffic light
parking meter | parking lot
ski pole | skis
traffic cone | traffic light
bread | toast
butter knife | butter
apple pie | apple
orange juice | orange
chicken | fried chicken
picnic table | picnic basket
coffee cup | tea cup
coffee cup | coffee
wine bottle | wine glass
beer bottle | wine bottle
dog | dog collar
cat | cat food
horse | saddle
car | steering wheel
bicycle | bicycle wheel
airplane | airplane wing
boat | sail
tree | leaf
house | roof
shirt | button
labrador | dog
oak tree | tree
sports car | car
tulip | flower
fruit | banana
vehicle | motorcycle
animal | cow
food | pizza
appliance | refrigerator
man | woman
boy | girl
baby | man
red umbrella | blue umbrella
open umbrella | closed umbrella
empty plate | full plate
king | queen
sunrise | sunset
mountain | beach
snow | sand
grass | tree
kitchen | bathroom
chess | checkers
violin | guitar
trumpet | trombone
sweater vest | sweater
school bus | school
hair dryer | hairbrush
bus stop | bus
train station | train
ice cream cone | traffic cone
computer desk | computer
water bottle | water
book bag | book
hospital | hospital bed
pneumonia | pulmonary embolism
pneumothorax | hydropneumothorax
pneumothorax | pneumomediastinum
hemothorax | pneumothorax
pulmonary edema | pleural effusion
pulmonary edema | pulmonary embolism
pericardial effusion | pleural effusion
atelectasis | bronchiectasis
atelectasis | pneumothorax
consolidation | atelectasis
lung nodule | lung mass
hiatal hernia | inguinal hernia
rib fracture | clavicle fracture
humeral fracture | rib fracture
kyphosis | scoliosis
osteopenia | osteoarthritis
emphysema | empyema
pulmonary fibrosis | cystic fibrosis
cardiomegaly | hepatomegaly
splenomegaly | hepatomegaly
aortic calcification | coronary calcification
aortic aneurysm | aortic dissection
left lower lobe | left upper lobe
right upper lobe opacity | right lower lobe opacity
left pleural effusion | right pleural effusion
right lung | left lung
left ventricle | right ventricle
right atrium | right ventricle
endotracheal tube | nasogastric tube
endotracheal tube | tracheostomy tube
chest tube | feeding tube
picc line | dialysis catheter
pacemaker | loop recorder
pacemaker lead | ECG lead
sternal wires | pacemaker wires
surgical clips | surgical drain
pleural thickening | bronchial wall thickening
pleural plaque | pleural effusion
hilar mass | mediastinal mass
mediastinal widening | mediastinal mass
tracheal deviation | tracheal stenosis
pneumothorax | no pneumothorax
pleural effusion | absence of pleural effusion
no cardiomegaly | cardiomegaly
acute fracture | chronic fracture
lung | lung cancer
heart | heart failure
rib | rib fracture
viral pneumonia | pneumonia
tension pneumothorax | pneumothorax
breast implant | dental implant
left hilum | left hemidiaphragm
spinal hardware | shoulder prosthesis
lung abscess | lung cyst
clavicle | scapula
humerus | femur
"""


def pairs(text: str) -> list[tuple[str, str]]:
    """(answer, truth) of each line."""
    return [(a.strip(), b.strip()) for a, b in (line.split("|") for line in text.strip().splitlines())]


def tuning_pairs() -> list[tuple[str, str, bool]]:
    """(answer, truth, same) of all pairs that were written for this purpose."""
    return [(*pair, True) for pair in pairs(SAME)] + [(*pair, False) for pair in pairs(DIFFERENT)]


def coco_pairs(seed: int = 0, each: int = 20_000) -> list[tuple[str, str, bool]]:
    """All pairs of names of one class, and as many drawn of different classes as asked for."""
    names = {name: frozenset((name, *others)) for name, others in SYNONYMS.items()}
    where = Counter(name for group in names.values() for name in group)
    alone = {cls: sorted(name for name in group if where[name] == 1) for cls, group in names.items()}
    within = [(a, b, True) for group in alone.values() for a, b in combinations(group, 2)]
    flat = [(name, cls) for cls, group in alone.items() for name in group]
    rng = np.random.default_rng(seed)
    drawn = rng.integers(len(flat), size=(each, 2))
    across = [(flat[i][0], flat[j][0], False) for i, j in drawn if flat[i][1] != flat[j][1]]
    return within + list(dict.fromkeys(across))


def main() -> None:
    """Print the curves, what decides how much, and the errors on the written pairs at the chosen threshold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--form", default=judge_lite.FORM, help="phrase that names stand in, with {} for the name")
    parser.add_argument("--threshold", type=float, default=judge_lite.THRESHOLD)
    args = parser.parse_args()
    judge_lite.FORM = args.form
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "vectors.sqlite")
        for label, triples in (("written pairs", tuning_pairs()), ("COCO names", coco_pairs())):
            asked, truth = [(a, b) for a, b, _ in triples], np.array([same for *_, same in triples])
            chosen = LiteJudge(store, threshold=args.threshold).explain(asked)
            print(f"\n{label}: {truth.sum():,} same, {(~truth).sum():,} different")
            reached = np.array([why == "embedding" for _, why in chosen])
            print(f"decided by the embedding: {(reached & truth).sum():,} same, {(reached & ~truth).sum():,} different")
            print("threshold  same found   different merged   agreement   by embedding: right merges / wrong merges")
            for threshold in (0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 2.0):
                said = np.array([s for s, _ in LiteJudge(store, threshold=threshold).explain(asked)])
                merged = said & reached
                print(
                    f"{threshold:9.2f} {said[truth].mean():11.3f} {said[~truth].mean():18.4f} "
                    f"{(said == truth).mean():11.3f}   {(merged & truth).sum():,} / {(merged & ~truth).sum():,}"
                )
            if label == "written pairs":
                for (answer, truth_name, same), (said_same, why) in zip(triples, chosen, strict=True):
                    if same != said_same:
                        print(f"  wrong: {answer} | {truth_name}: said {'same' if said_same else 'different'} by {why}")
            else:
                wrong = [(a, b, why) for (a, b, same), (s, why) in zip(triples, chosen, strict=True) if s and not same]
                for a, b, why in wrong[:25]:
                    print(f"  merged: {a} | {b} by {why}")
        store.close()


if __name__ == "__main__":
    main()
