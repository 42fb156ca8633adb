"""Detection on made-up beliefs with a known answer: the method finds what was put in, and nothing where nothing is."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symbal_hf.auditing.association import associate, error_share, rank_errors
from symbal_hf.auditing.judges.protocol import Beliefs, log_ratio_of
from symbal_hf.language.concepts import find_concepts, same_thing
from symbal_hf.language.facts import split_facts
from symbal_hf.language.naming import fuller_name, other_names
from symbal_hf.language.phrases import Vocabulary

CLASSES = ("dog", "cat", "car", "tree", "boat", "chair", "table", "lamp")


def world(n, *, seed, planted=None, noise=0.6):
    """N images of random objects, captions that name what is there, and a scorer of known quality."""
    rng = np.random.default_rng(seed)
    there = rng.random((n, len(CLASSES))) < 0.25
    stated = there & (rng.random(there.shape) < 0.8)
    if planted:
        t, v, with_v, without = planted
        rate = np.where(there[:, v], with_v, without)
        stated[:, t] |= ~there[:, t] & (rng.random(n) < rate)
    captions = [
        " ".join(f"There is a {name}." for name, said in zip(CLASSES, row, strict=True) if said) or "A view of a place."
        for row in stated
    ]
    odds = np.where(there, 2.5, -2.5) + rng.normal(0, noise, there.shape)
    presence = (1 / (1 + np.exp(-odds))).astype(np.float32)
    concepts = find_concepts(split_facts(captions), vocabulary=Vocabulary(dict.fromkeys(CLASSES, ())))
    return concepts, Beliefs(presence, log_ratio_of(presence), "embedding", False), there, stated


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("t", "v"), [(4, 0), (1, 5), (7, 6)])
def test_the_planted_pair_comes_first(t, v, seed):
    concepts, beliefs, *_ = world(800, seed=seed, planted=(t, v, 0.5, 0.05))
    errors = rank_errors(concepts, beliefs.log_ratio)
    assert errors[0].concept == t
    pair = associate(concepts, beliefs, errors=errors[:1])[0]
    assert (pair.error, pair.feature) == (t, v)
    assert pair.p_corrected < 0.001


def test_the_table_of_a_pair_is_the_table_of_the_world():
    concepts, beliefs, there, stated = world(2000, seed=1, planted=(4, 0, 0.5, 0.05), noise=0.1)
    pair = associate(concepts, beliefs, errors=rank_errors(concepts, beliefs.log_ratio)[:1])[0]
    free = ~there[:, 4]
    truth = (
        (stated[:, 4] & free & there[:, 0]).sum(), (free & there[:, 0]).sum(),
        (stated[:, 4] & free & ~there[:, 0]).sum(), (free & ~there[:, 0]).sum(),
    )  # fmt: skip
    assert pair.table == tuple(map(int, truth))


def test_errors_at_random_rows_go_with_nothing():
    significant = 0
    for seed in range(20):
        concepts, beliefs, *_ = world(800, seed=seed, planted=(4, 0, 0.2, 0.2))
        errors = rank_errors(concepts, beliefs.log_ratio)
        assert errors[0].concept == 4
        significant += associate(concepts, beliefs, errors=errors[:1])[0].p_corrected < 0.05
    assert significant <= 3


def test_a_concept_that_the_scorer_cannot_see_is_no_suspect():
    concepts, beliefs, *_ = world(800, seed=0)
    blind = beliefs.presence.copy()
    blind[:, 2] = 0.02
    assert all(e.concept != 2 for e in rank_errors(concepts, log_ratio_of(blind)))


@settings(max_examples=50)
@given(st.floats(0.0, 1.0), st.integers(0, 1000))
def test_the_error_share_is_estimated_within_its_interval(share, seed):
    rng = np.random.default_rng(seed)
    shows = rng.random(4000) < 0.2
    x = np.where(shows, 1.0, -1.0) + rng.normal(0, 1, 4000)
    presence = 1 / (1 + np.exp(-(2 * x + np.log(0.2 / 0.8))))
    ratio = log_ratio_of(presence[:, None])[:, 0]
    n = 600
    false = rng.random(n) < share
    rows = np.where(false, rng.choice(np.flatnonzero(~shows), n), rng.choice(np.flatnonzero(shows), n))
    estimate = error_share(0, ratio[rows])
    assert abs(estimate.share - max(share, 0.05)) < 0.17
    assert estimate.low <= share + 0.12


def test_no_mention_is_no_evidence():
    assert error_share(0, np.zeros(0)).evidence == 0
    assert error_share(0, np.zeros(50)).evidence == 0


def test_mentions_in_the_sentence_of_the_error_do_not_count_as_features():
    facts = split_facts(["There is a boat with a dog. A cat sleeps."] * 3)
    concepts = find_concepts(facts, vocabulary=Vocabulary(dict.fromkeys(CLASSES, ())))
    said = concepts.mentions(without_facts_naming=CLASSES.index("boat"))
    assert said[:, CLASSES.index("cat")].all()
    assert not said[:, CLASSES.index("dog")].any()


def test_the_full_name_is_used_where_captions_use_it():
    facts = split_facts(["A tennis racket."] * 8 + ["A racket."] * 2 + ["A dog."] * 5)
    concepts = find_concepts(facts)
    short, weight = concepts.names.index("racket"), np.ones(15)
    assert concepts.names[fuller_name(concepts, short, weight)] == "tennis racket"
    weight[:6] = 0
    assert fuller_name(concepts, short, weight) == short


def test_a_compound_known_from_other_facts_is_completed():
    facts = split_facts(["A teddy bear on a bed."] * 6 + ["Two teddy bears watch the game."] * 3)
    concepts = find_concepts(facts)
    column = concepts.by_fact[:, concepts.names.index("teddy bear")].toarray().ravel()
    assert column.all()
    assert "bear" not in concepts.names


def test_concepts_come_in_one_order_whatever_the_hash_seed():
    code = (
        "from symbal_hf.language.concepts import find_concepts; from symbal_hf.language.facts import split_facts;"
        "texts = ['A dog and a cat by a red car.', 'A tree, a boat and an old stop sign.'] * 5;"
        "print(find_concepts(split_facts(texts)).names)"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True
        ).stdout
        for seed in ("0", "1", "2", "3")
    }
    assert len(said) == 1 and "stop sign" in said.pop()


def test_a_part_or_another_name_of_the_error_is_no_feature_of_it():
    names = ("toilet seat", "toilet", "white toilet", "tennis ball", "tennis racket", "seat", "ball")
    concepts = find_concepts(split_facts(["Nothing."]), vocabulary=Vocabulary(dict.fromkeys(names, ())))
    assert other_names(concepts, 0).tolist() == [True, True, True, False, False, True, False]
    assert other_names(concepts, 3).tolist() == [False, False, False, True, False, False, True]


def test_one_name_inside_another_is_the_same_thing():
    assert same_thing("toilet", "white toilet")
    assert same_thing("Dog", "dog")
    assert not same_thing("hot dog", "dog house")
