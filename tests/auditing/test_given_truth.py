"""Where the truth is given every statement is right or wrong: what is tested is counted, image by image."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import symbal_hf
from symbal_hf.auditing.engine import association_pairs
from symbal_hf.auditing.evidence import gather
from symbal_hf.auditing.verdict import conclude, finding_of
from symbal_hf.core.store import Store
from symbal_hf.data.table import AuditData, load_data
from symbal_hf.models.composition import Composition
from symbal_hf.models.parts import Parts

NAMES = ("sink", "toilet", "dog", "cat", "car", "boat", "lamp", "chair")
SINK, TOILET, DOG = 0, 1, 2
WORDS = dict.fromkeys(NAMES, ())


def audit(rows, **options):
    return symbal_hf.audit(rows, objects_column="objects", vocabulary=WORDS, **options)


def pairs(result):
    return {(finding.textual_error, finding.visual_feature) for finding in result.findings}


@pytest.mark.parametrize("images", [0, 1, 5, 50])
def test_a_thing_that_few_images_or_none_show_is_found_where_captions_state_it(images):
    rows = [
        {"id": i, "caption": "A toilet." + (" There is a sink." if i < 10 else ""), "objects": ["toilet"]}
        if i < 40
        else {"id": i, "caption": "A dog.", "objects": ["dog"]}
        for i in range(2000)
    ]
    for row in rows[2000 - images :]:
        row.update(caption="A sink.", objects=["sink"])
    result = audit(rows)
    assert pairs(result) == {("sink", "toilet")}
    (finding,) = result.findings
    assert (finding.state, finding.confirmed_by, finding.errors_with_feature) == ("found", "objects", 10)


def world(n, seed):
    """N rows of random objects (N, P), and captions that state six in ten of them (N, P)."""
    rng = np.random.default_rng(seed)
    there = rng.random((n, len(NAMES))) < 0.2
    return rng, there, there & (rng.random(there.shape) < 0.6)


def rows_of(there, stated):
    return [
        {
            "id": i,
            "caption": " ".join(f"There is a {NAMES[c]}." for c in np.flatnonzero(stated[i])) or "A view of a place.",
            "objects": [NAMES[c] for c in np.flatnonzero(there[i])],
        }
        for i in range(len(there))
    ]


@pytest.mark.parametrize("planted", [[(0, 1), (0, 4)], [(0, 1), (3, 1)], [(0, 1), (3, 4), (6, 2)]])
def test_one_error_with_two_features_and_two_with_one_are_all_found(planted):
    hits = 0
    for seed in range(10):
        rng, there, stated = world(1500, seed)
        for t, v in planted:
            stated[:, t] |= ~there[:, t] & there[:, v] & (rng.random(1500) < 0.3)
        hits += pairs(audit(rows_of(there, stated), top_k=9)) == {(NAMES[t], NAMES[v]) for t, v in planted}
    assert hits >= 9


def test_what_lies_beside_the_feature_is_no_further_feature():
    for seed in range(10):
        rng, there, stated = world(1500, seed)
        there[:, 2] = there[:, 1] & (rng.random(1500) < 0.8)  # dogs are where toilets are, and nowhere else
        stated[:, 2] &= there[:, 2]
        stated[:, 0] |= ~there[:, 0] & there[:, 1] & (rng.random(1500) < 0.3)
        assert pairs(audit(rows_of(there, stated))) == {("sink", "toilet")}


def test_a_feature_that_is_hardly_ever_without_another_is_found_beside_it():
    """As skateboards are where people are: each raises the error further."""
    hits = 0
    for seed in range(10):
        rng, there, stated = world(2000, seed)
        there[:, 1] = rng.random(2000) < 0.5
        there[:, 2] = rng.random(2000) < np.where(there[:, 1], 0.2, 0.005)
        stated[:, 2] &= there[:, 2]
        chance = 0.1 * there[:, 1] + 0.3 * there[:, 2]
        stated[:, 0] |= ~there[:, 0] & (rng.random(2000) < chance)
        hits += pairs(audit(rows_of(there, stated))) == {("sink", "toilet"), ("sink", "dog")}
    assert hits >= 9


@pytest.mark.parametrize("copies", [1, 2, 5])
def test_errors_at_random_images_are_no_more_systematic_when_each_image_has_several_captions(copies, tmp_path):
    alarms, parts = 0, Parts(Composition(scorer_1="objects", scorer_2="objects"), Store(tmp_path / "s"))
    for seed in range(40):
        rng, there, stated = world(400, seed)
        wrong = ~there[:, 0] & (rng.random(400) < 0.15)
        stated[wrong, 0] = True
        image = np.repeat(np.arange(400), copies)
        rows = rows_of(there[image], stated[image])
        data = AuditData(
            tuple(str(row["id"]) for row in rows), tuple(row["caption"] for row in rows), None,
            tuple(frozenset(row["objects"]) for row in rows), None, (), "copies", shown=tuple(map(str, image)),
        )  # fmt: skip
        evidence = gather(data, parts, vocabulary=WORDS)
        assert evidence.units.count(len(data)) == 400
        result = conclude(evidence, association_pairs(evidence))
        alarms += result.verdict == "systematic"
        assert all(finding.rows_with_feature + finding.rows_without_feature <= 400 for finding in result.suspects)
    assert alarms <= 4


@pytest.mark.parametrize("words", ["a tank and a seat", "a white toilet seat", "a seat"])
def test_what_a_thing_is_said_to_have_is_no_other_thing(words):
    """ "Seat" names a chair in this vocabulary, but the seat of a toilet is part of it."""
    rows = [
        {
            "id": i,
            "caption": f"A white toilet. The toilet has {words}." if i < 12 else "A white toilet.",
            "objects": ["toilet"],
        }
        for i in range(40)
    ]
    rows += [{"id": i, "caption": "A dog on a chair.", "objects": ["dog", "chair"]} for i in range(40, 60)]
    rows += [{"id": i, "caption": "A dog.", "objects": ["dog"]} for i in range(60, 400)]
    result = symbal_hf.audit(rows, vocabulary={"chair": ["seat", "stool"], "toilet": [], "dog": []})
    assert not result.findings


@pytest.mark.parametrize("seed", range(3))
def test_a_finding_says_whether_its_feature_matters_where_the_strongest_other_one_is_alike(seed, tmp_path):
    rng, there, stated = world(3000, seed)
    there[:, DOG] |= there[:, TOILET] & (rng.random(3000) < 0.7)  # dogs go with toilets, and with no error
    there[:, SINK] &= ~there[:, TOILET]
    stated[:, SINK] = there[:, SINK] | (there[:, TOILET] & (rng.random(3000) < 0.5))
    (finding,) = (result := audit(rows_of(there, stated), store=Store(tmp_path / "s"))).findings
    assert (finding.textual_error, finding.visual_feature, finding.other_feature) == ("sink", "toilet", "dog")
    assert finding.p_beside_other < 1e-20 and result.verdict == "systematic"
    data = load_data(rows_of(there, stated), objects_column="objects")
    parts = Parts(Composition(scorer_1="objects", scorer_2="objects"), Store(tmp_path / "t"))
    made = gather(data, parts, vocabulary=WORDS)
    (pair, *_) = [p for p in association_pairs(made) if made.concepts.names[p.error] == "sink"]
    dog, toilet = (made.concepts.names.index(name) for name in ("dog", "toilet"))
    swapped = replace(pair, feature=dog, features=(dog, toilet), scores=(1.0, 1.0), has_feature=there[:, DOG])
    told = finding_of(made, swapped, [pair.error])
    assert (told.other_feature, told.visual_feature) == ("toilet", "dog") and told.p_beside_other > 1e-3
