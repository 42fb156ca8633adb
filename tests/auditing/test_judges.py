"""What a judge says of an image follows from what it saw there, whatever the blocks in which it looked."""

from __future__ import annotations

import numpy as np
import pytest

from symbal_hf.auditing.association import associate, error_share
from symbal_hf.auditing.judges import protocol
from symbal_hf.auditing.judges.by_name import JUDGES
from symbal_hf.auditing.judges.objects import ObjectJudge
from symbal_hf.auditing.judges.protocol import LIMIT, Beliefs, beliefs, fact_alignment, judge_all, log_ratio_of
from symbal_hf.auditing.judges.references import ReferenceJudge
from symbal_hf.auditing.judges.told import FactJudge, ListJudge
from symbal_hf.auditing.judges.zero_shot import ZeroShotJudge
from symbal_hf.language.concepts import find_concepts
from symbal_hf.language.facts import split_facts
from symbal_hf.language.phrases import Vocabulary
from symbal_hf.models.composition import SCORERS

NAMES = ("dog", "sofa", "tree", "boat", "lamp", "kite", "oven", "cake")
N = 240


def embed(texts):
    """A unit vector a word: phrases are near as far as they share words, but for articles."""
    words = [sorted(set(text.lower().split()) - {"a", "an", "of", "photo"}) for text in texts]
    out = np.zeros((len(texts), 64), np.float32)
    for row, group in enumerate(words):
        for word in group:
            out[row, sum(map(ord, word)) % 64] += 1
    return out / np.maximum(np.linalg.norm(out, axis=1, keepdims=True), 1e-9)


@pytest.fixture(scope="module")
def shown():
    rows = np.zeros((N, len(NAMES)), bool)
    rng = np.random.default_rng(0)
    for row in rows:  # every image shows two things
        row[rng.permutation(len(NAMES))[:2]] = True
    return rows


@pytest.fixture(scope="module")
def concepts(shown):
    said = [". ".join(f"There is a {NAMES[c]}" for c in np.flatnonzero(row)) + "." for row in shown]
    return find_concepts(split_facts(said), vocabulary=Vocabulary(dict.fromkeys(NAMES, ())))


def judges(shown, concepts):
    told = [tuple(f"a {NAMES[c]}" for c in np.flatnonzero(row)) for row in shown]
    objects = [None if i % 10 == 9 else frozenset(NAMES[c] for c in np.flatnonzero(row)) for i, row in enumerate(shown)]
    directions = embed([f"a photo of a {name}" for name in NAMES])
    noise = np.random.default_rng(1).normal(0, 0.05, (N, 64))
    images = (shown @ directions + noise).astype(np.float32)
    images /= np.linalg.norm(images, axis=1, keepdims=True)
    listed = ListJudge([row if i % 10 != 9 else () for i, row in enumerate(told)], embed, scorer="vision-language")
    score = np.full(len(concepts.facts), 0.9, np.float32)
    return {
        "objects": ObjectJudge(objects, Vocabulary(dict.fromkeys(NAMES, ()))),
        "references": ReferenceJudge([(" and ".join(row) + ".", *row) if row else () for row in told], embed),
        "list": listed,
        "facts": FactJudge(listed, concepts, score, scorer="vision-language"),
        "zero-shot": ZeroShotJudge(images, embed, concepts),
    }


@pytest.mark.parametrize("name", ["objects", "references", "list", "facts", "zero-shot"])
def test_it_does_not_matter_in_which_blocks_a_judge_looks(shown, concepts, name, monkeypatch):
    whole = judge_all(judges(shown, concepts)[name], NAMES)
    monkeypatch.setattr(protocol, "BLOCK", 37)
    for one, other in zip(whole, judge_all(judges(shown, concepts)[name], NAMES), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["objects", "references", "list", "facts", "zero-shot"])
def test_what_is_there_is_believed_and_what_is_not_there_is_not(shown, concepts, name):
    presence, ratio = judge_all(judges(shown, concepts)[name], NAMES)
    known = ~np.isnan(presence[:, 0])
    assert known.mean() > 0.8 and np.abs(ratio).max() <= LIMIT
    for c in range(len(NAMES)):
        there, gone = known & shown[:, c], known & ~shown[:, c]
        # Cosines that nobody calibrated are read by the mentions of other concepts, and so with care.
        gap = 0.05 if name == "zero-shot" else 0.3
        assert np.nanmean(presence[there, c]) > np.nanmean(presence[gone, c]) + gap
        assert ratio[there, c].mean() < 0 < ratio[gone, c].mean()


@pytest.mark.parametrize("name", ["references", "zero-shot"])
def test_presence_is_the_prior_weighed_by_the_evidence(shown, concepts, name):
    """logit(presence) + log-ratio is one number a concept, its prior log-odds, wherever the image was looked at."""
    presence, ratio = judge_all(judges(shown, concepts)[name], NAMES)
    for c in range(len(NAMES)):
        rows = ~np.isnan(presence[:, c])
        prior = np.log(presence[rows, c] / (1 - presence[rows, c])) + ratio[rows, c]
        assert prior.std() < 0.02
        share = 1 / (1 + np.exp(-prior.mean()))
        assert share == pytest.approx(shown[rows, c].mean() * (1.5 if name == "zero-shot" else 1), rel=0.25)


def test_where_nothing_is_known_nothing_is_said(shown, concepts):
    for name in ("objects", "list"):
        presence, ratio = judge_all(judges(shown, concepts)[name], NAMES)
        assert np.isnan(presence[9]).all() and not ratio[9].any()
    assert not judge_all(ObjectJudge([None] * 5, Vocabulary({"dog": ()})), ["dog"])[1].any()
    assert np.isnan(judge_all(ReferenceJudge([()] * 5, embed), ["dog"])[0]).all()
    assert np.isnan(judge_all(ListJudge([()] * 5, embed, scorer="text-only"), ["dog"])[0]).all()


def test_log_ratios_are_bayes_against_the_mean():
    presence = np.array([[0.9], [0.5], [0.1]], np.float32)
    mean = np.log(0.5 / 0.5)
    expected = mean - np.log(presence / (1 - presence))
    np.testing.assert_allclose(log_ratio_of(presence), expected, rtol=1e-5, atol=1e-6)
    assert not log_ratio_of(np.full((4, 1), 0.03)).any()


def test_a_mention_is_weighed_with_the_share_of_mentions_that_are_true():
    ratio = np.array([[0.0, 2.0, -2.0]], np.float32)
    fits = Beliefs(np.full((1, 3), 0.5, np.float32), ratio, "embedding", False).if_stated[0]
    assert fits == pytest.approx([0.9, 0.9 / (0.9 + 0.1 * np.e**2), 0.9 / (0.9 + 0.1 * np.e**-2)], rel=1e-5)


def test_a_false_fact_blames_what_the_other_judge_doubts():
    facts = split_facts(["A dog lies beside a boat."])
    both = find_concepts(facts, vocabulary=Vocabulary({"dog": (), "boat": ()}))
    sees = ListJudge([("a dog",)], embed, scorer="vision-language")
    presence, _ = judge_all(FactJudge(sees, both, np.array([0.05], np.float32), scorer="vision-language"), both.names)
    dog, boat = presence[0, both.names.index("dog")], presence[0, both.names.index("boat")]
    # P(there | not both there) by independence: (p - pq) / (1 - pq), and a fact that may yet be true in one of twenty.
    p, q = 0.97, 0.03
    assert dog == pytest.approx(0.05 + 0.95 * (1 - (1 - p) / (1 - p * q)), abs=0.01)
    assert boat == pytest.approx(0.05 + 0.95 * (1 - (1 - q) / (1 - p * q)), abs=0.01)
    alone = find_concepts(split_facts(["A dog."]), vocabulary=Vocabulary({"dog": ()}))
    judge = FactJudge(sees, alone, np.array([0.2], np.float32), scorer="vision-language")
    assert judge_all(judge, ("dog",))[0][0, 0] == pytest.approx(0.2, abs=0.01)


def test_a_fact_fits_as_well_as_the_least_fitting_thing_it_names():
    facts = split_facts(["A dog and a boat. It is nice."])
    named = find_concepts(facts, vocabulary=Vocabulary({"dog": (), "boat": ()}))
    ratio = np.array([[1.5, -3.0]], np.float32)
    fits = fact_alignment(named, ratio)
    assert fits[0] == pytest.approx(1 / (1 + np.exp(1.5)), rel=1e-5) and np.isnan(fits[1])


def test_what_was_judged_before_is_not_asked_again(shown, concepts):
    judge, columns = judges(shown, concepts)["objects"], {}
    first = beliefs(judge, NAMES[:2], columns=columns)
    judge.look = lambda names, rows: (
        pytest.fail("it was judged before") if set(names) & set(NAMES[:2]) else (ObjectJudge.look(judge, names, rows))
    )
    again = beliefs(judge, NAMES, columns=columns)
    np.testing.assert_array_equal(again.presence[:, :2], first.presence)
    assert beliefs(judge, ()).presence.shape == (N, 0)


def test_every_scorer_of_a_composition_has_its_judge():
    assert set(JUDGES) == set(SCORERS) - {"auto"}


def test_the_score_of_a_feature_is_that_of_drawing_the_errors_at_random():
    """Of n rows that lack t, m state it; k of them are among the n1 rows with v: z = (k - m n1/n) / spread."""
    rows = [("toilet",)] * 30 + [("dog",)] * 90
    said = ["A sink."] * 18 + ["A wall."] * 12 + ["A sink."] * 6 + ["A wall."] * 84
    vocabulary = Vocabulary(dict.fromkeys(("sink", "toilet", "dog", "wall"), ()))
    found = find_concepts(split_facts(said), vocabulary=vocabulary)
    views = beliefs(ObjectJudge([frozenset(row) for row in rows], vocabulary), found.names)
    sink = found.names.index("sink")
    error = error_share(sink, views.log_ratio[found.stated(sink), sink])
    (pair,) = associate(found, views, errors=[error])
    m, n, n1, k = 24, 120, 30, 18
    expected = (k - m * n1 / n) / np.sqrt(m * (1 - m / n) * (n1 / n) * (1 - n1 / n))
    assert found.names[pair.feature] == "toilet" and pair.scores[0] == pytest.approx(expected, rel=0.01)
    assert pair.table == (k, n1, m - k, n - n1)
