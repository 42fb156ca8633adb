"""A sentence of a chest report denies, doubts or asserts; the rules tell which, as the labels of real reports do."""

from __future__ import annotations

import json

import pytest

from benchmark_builder.reports.radiology import (
    medical_vocabulary,
    report_sentences,
    report_statuses,
    says_something,
    states_only,
    statuses,
    weigh,
)
from benchmark_builder.reports.radiology_terms import CONCEPTS, DISEASES
from benchmark_builder.reports.statements import Statements

SHORT = {
    "cardiomegaly": "C", "pneumothorax": "P", "atelectasis": "A", "pleural effusion": "F", "edema": "E",
    "pacemaker": "pm", "chest tube": "ct", "endotracheal tube": "et", "surgical clips": "sc", "sternotomy wires": "sw",
}  # fmt: skip
MARKS = {"present": "+", "absent": "-", "uncertain": "?"}


def read(sentence: str) -> str:
    """The statuses in short: "C+ E-" is cardiomegaly present, edema absent."""
    found = statuses(sentence)
    return " ".join(SHORT[concept] + MARKS[found[concept]] for concept in CONCEPTS if concept in found)


SAID = [
    ("Mild cardiomegaly.", "C+"),
    ("The heart is mildly to moderately enlarged.", "C+"),
    ("Enlargement of the cardiac silhouette, stable.", "C+"),
    ("Small bilateral effusions with bibasilar atelectases.", "A+ F+"),
    ("Interstitial pulmonary oedema.", "E+"),
    ("Large left hydropneumothorax.", "P+ F+"),
    ("Complete collapse of the left lower lobe.", "A+"),
    ("Collapse of the T8 vertebral body.", ""),
    ("Large pericardial effusion.", ""),
    ("Soft tissue edema of the neck.", ""),
    ("Dual-chamber AICD with leads in the right heart.", "pm+"),
    ("Pacer pads overlie the chest.", ""),
    ("ETT terminates 4 cm above the carina.", "et+"),
    ("Tracheostomy tube in place.", ""),
    ("Right pleural pigtail catheter, no pneumothorax.", "P- ct+"),
    ("Biliary pigtail catheter.", ""),
    ("Median sternotomy wires and mediastinal clips are intact.", "sc+ sw+"),
]
DENIED = [
    ("No pneumothorax.", "P-"),
    ("No focal consolidation, pleural effusion or pneumothorax.", "P- F-"),
    ("No pneumothorax, large effusion, or consolidation.", "P- F-"),
    ("Negative for edema.", "E-"),
    ("Lungs are clear of effusion and free of edema.", "F- E-"),
    ("Absence of pleural effusion.", "F-"),
    ("Edema is absent.", "E-"),
    ("Pneumothorax has been ruled out.", "P-"),
    ("Pneumothorax is not seen.", "P-"),
    ("Pleural effusion and pneumothorax are not seen.", "P- F-"),
    ("Mild edema and a pneumothorax is not seen.", "P- E+"),
    ("The previously seen effusion is no longer visualized.", "F-"),
    ("The effusion has resolved.", "F-"),
    ("Interval resolution of edema.", "E-"),
    ("The heart is not enlarged.", "C-"),
    ("Heart size and pulmonary vascularity are within normal limits.", "C-"),
    ("Normal heart size.", "C-"),
    ("The chest tube has been removed.", "ct-"),
    ("Interval removal of the ET tube.", "et-"),
    ("The patient has been extubated.", "et-"),
    ("Opacity represents atelectasis rather than edema.", "A+ E-"),
]
ENDS = [
    ("No pneumothorax, small left effusion.", "P- F+"),
    ("No effusion, but mild cardiomegaly persists.", "C+ F-"),
    ("No pneumothorax; small effusion.", "P- F+"),
    ("Although no effusion is seen, there is mild edema.", "F- E+"),
    ("There is no effusion, however the heart is enlarged.", "C+ F-"),
    ("No cardiomegaly with small bilateral effusions.", "C- F+"),
    ("Moderate cardiomegaly without edema.", "C+ E-"),
    ("No effusion is seen and mild cardiomegaly is noted.", "C+ F-"),
    ("Interval removal of chest tube with small residual pneumothorax.", "P+ ct-"),
    ("No pneumothorax status post chest tube placement.", "P- ct+"),
    ("No pneumothorax following chest tube removal.", "P- ct-"),
    ("Persistent pneumothorax despite the chest tube.", "P+ ct+"),
]
NOT_DENIED = [
    ("No change in moderate left pneumothorax.", "P+"),
    ("No significant interval change in bilateral effusions or atelectasis.", "A+ F+"),
    ("Not only cardiomegaly but also edema.", "C+ E+"),
    ("There has been no resolution of the pneumothorax.", "P+"),
    ("Partial resolution of edema.", "E+"),
    ("Resolving edema.", "E+"),
]
DOUBTED = [
    ("Possible small effusion.", "F?"),
    ("Opacity may represent atelectasis.", "A?"),
    ("Opacities may represent crowding, mild edema, infiltrates.", "E?"),
    ("Cannot exclude pneumothorax.", "P?"),
    ("Pneumothorax cannot be excluded.", "P?"),
    ("No definite evidence of, but cannot exclude, a pneumothorax.", "P?"),
    ("Questionable edema.", "E?"),
    ("Suspected effusion.", "F?"),
    ("Effusion is suspected.", "F?"),
    ("Borderline cardiomegaly.", "C?"),
    ("Heart size is at the upper limits of normal.", "C?"),
    ("Scarring versus atelectasis.", "A?"),
    ("Atelectasis or scarring at the left base.", "A?"),
    ("Cardiomegaly, atelectasis or scarring.", "C+ A?"),
    ("Left effusion/atelectasis.", "A? F?"),
    ("Pacemaker/ICD in the left chest.", "pm+"),
    ("Possible pneumonia with small effusion.", "F+"),
    ("Evaluate for pneumothorax.", "P?"),
    ("The pneumothorax has nearly resolved.", "P?"),
    ("History of pneumothorax.", "P?"),
    ("Prior sternotomy.", "sw+"),
    ("Compared to prior, the effusion has increased.", "F+"),
    ("Pulmonary vascular congestion.", "E?"),
    ("No vascular congestion.", ""),
    ("Right costophrenic angle blunting.", "F?"),
]


@pytest.mark.parametrize(("sentence", "expected"), [*SAID, *DENIED, *ENDS, *NOT_DENIED, *DOUBTED])
def test_what_a_sentence_asserts(sentence, expected):
    assert read(sentence) == expected


@pytest.mark.parametrize(("sentence", "expected"), [*SAID, *DENIED, *ENDS, *NOT_DENIED, *DOUBTED])
def test_capitals_blanks_and_the_full_stop_change_nothing(sentence, expected):
    for other in (sentence.upper(), sentence.rstrip("."), sentence.replace(" ", "\n  ")):
        assert read(other) == expected


@pytest.mark.parametrize(
    ("first", "second"), [("Small effusion.", "No effusion."), ("Possible effusion.", "No effusion.")]
)
def test_the_most_affirmative_sentence_of_a_report_counts(first, second):
    for texts in ((first, second), (second, first), (f"{second} {first}",)):
        assert report_statuses(texts) == statuses(first)


def test_of_several_sources_any_may_call_a_concept_present():
    present, unsure = weigh([{"edema": "absent", "pneumothorax": "uncertain"}, {"edema": "uncertain"}])
    assert (present, unsure) == (frozenset(), {"edema", "pneumothorax"})
    assert weigh([{"edema": "uncertain"}, {"edema": "present"}]) == ({"edema"}, frozenset())


@pytest.mark.parametrize(
    "sentence",
    ["Heart size is normal.", "Mild cardiomegaly.", "Lungs are clear.", "Possible pneumonia.", "Left PICC in place.",
     "Low lung volumes without acute disease."],
)  # fmt: skip
def test_sentences_that_say_something(sentence):
    assert says_something(sentence)


@pytest.mark.parametrize(
    "sentence",
    ["No acute cardiopulmonary process.", "No pleural effusion or pneumothorax.", "Negative chest.", "Chest.",
     "Findings were discussed with Dr. ___ by telephone.", "No comparison.", "A chest CT is recommended.",
     "There is no evidence of active disease."],
)  # fmt: skip
def test_sentences_that_say_nothing(sentence):
    assert not says_something(sentence)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1. Edema. 2. No effusion.", ("Edema.", "No effusion.")),
        ("1. Mild cardiomegaly 2. No effusion", ("Mild cardiomegaly", "No effusion")),
        ("Fracture of rib 4. The lungs are clear.", ("Fracture of rib 4. The lungs are clear.",)),
        ("No effusion.Heart is large. lungs are clear.", ("No effusion.", "Heart is large.", "lungs are clear.")),
        ("The tip is 4.5 cm above the carina. .", ("The tip is 4.5 cm above the carina.",)),
    ],
)
def test_lists_and_slips_of_dictation_are_split_into_sentences(text, expected):
    assert report_sentences(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Left effusion/atelectasis.", {"pleural effusion", "atelectasis"}),
        ("Clear lungs. No pneumothoraces.", {"pneumothorax"}),
        ("The heart is normal in size.", {"cardiomegaly"}),
        ("Pericardial effusion.", set()),
        ("Stable chest.", set()),
    ],
)
def test_the_vocabulary_finds_what_a_caption_speaks_of_even_to_deny_it(text, expected):
    assert medical_vocabulary().find(text) == expected
    assert set(medical_vocabulary().classes) == set(CONCEPTS)


@pytest.mark.parametrize("concept", CONCEPTS)
def test_every_name_names_itself(concept):
    for text in (concept, concept + "s" if not concept.endswith("s") else concept, f"There is a {concept}."):
        if text not in ("cardiomegalys", "pneumothoraxs"):
            assert medical_vocabulary().find(text) == {concept}


@pytest.mark.parametrize(
    ("sentence", "alone"),
    [
        ("Stable cardiomegaly.", True),
        ("The heart is mildly enlarged, unchanged.", True),
        ("Cardiomegaly without edema.", False),
        ("Cardiomegaly and a pacemaker.", False),
        ("Cardiomegaly with a right lower lobe opacity.", False),
        ("Cardiomegaly, no acute disease.", False),
        ("Possible cardiomegaly.", False),
        ("Borderline heart size.", False),
    ],
)
def test_a_sentence_states_one_disease_and_nothing_else(sentence, alone):
    assert states_only(sentence, "cardiomegaly") is alone


def test_statements_come_by_frequency_then_alphabet_whatever_their_spelling():
    mine = Statements("cardiomegaly")
    mine.add(
        ["Stable  cardiomegaly. MILD CARDIOMEGALY", "mild cardiomegaly. Mild cardiomegaly. The heart is enlarged."]
    )
    mine.add([None, "Cardiomegaly since ___. XXXX cardiomegaly. Stable cardiomegaly. No cardiomegaly."])
    assert mine.most_frequent() == ("Mild cardiomegaly.", "Stable cardiomegaly.", "The heart is enlarged.")
    assert mine.most_frequent(1) == ("Mild cardiomegaly.",)


# The labels are of the findings alone. Many that call a heart enlarged or a pneumothorax present are wrong ("Heart and
# mediastinum normal.", "No pleural effusions or pneumothorax."): reports whose findings name the opposite in so many
# words are set aside there. Floors: (precision, recall) of "present" against label 1.
FLOORS = {
    "cardiomegaly": (0.92, 0.70),
    "pneumothorax": (0.80, 0.85),
    "atelectasis": (0.98, 0.90),
    "pleural effusion": (0.90, 0.90),
    "edema": (0.98, 0.85),
}


@pytest.mark.parametrize("disease", DISEASES)
def test_agreement_with_the_labels_of_real_reports(disease, shared_data):
    path = shared_data / "openi_reports_text" / "reports.jsonl"
    if not path.is_file():
        pytest.skip(f"no {path.name} in the real data")
    rows = [json.loads(line) for line in path.open(encoding="utf-8")]
    label = disease.title()
    pairs = [
        (row["chexpert"].get(label), report_statuses([row["findings"]]).get(disease))
        for row in rows
        if row["chexpert"] and row["findings"]
    ]
    pairs = [(given, found) for given, found in pairs if (given, found) != (1.0, "absent")]
    both = pairs.count((1.0, "present"))
    precision = both / sum(found == "present" for _, found in pairs)
    recall = both / sum(given == 1.0 for given, _ in pairs)
    assert precision >= FLOORS[disease][0]
    assert recall >= FLOORS[disease][1]
    assert not [found for given, found in pairs if given == 0.0].count("present") > 3
