"""A planted error is a lie in the right rows, of the promised strength, and nothing else in the data changes."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmark_builder.bases.coco_names import COCO_NAMES, natural_vocabulary
from benchmark_builder.planting.inject import Infeasible, solve
from benchmark_builder.planting.plant import Ground, Planted, mentions, natural_templates, plant, state
from benchmark_builder.scenes.compose import noun_phrase
from symbal_hf.language.facts import sentences
from symbal_hf.language.phrases import Vocabulary

LIGHT = settings(max_examples=40)
THINGS = ("dog", "cat", "bench", "oven", "kite", "umbrella", "skis", "traffic light")
OPENINGS = ("A photo with {}.", "Here is {}", "We see {}! It is bright.", "On Monday: {}? Yes. Dr. Lee took it")


def plant_at_random(captions, objects, *, textual_error, n, **options):
    return Ground.of(captions, objects, **options).plant_at_random(textual_error, n)


def dataset(n: int, *, seed: int = 0):
    """Captions that name some of what the images show, and now and then something that they do not show."""
    rng = random.Random(seed)
    objects = [frozenset(thing for thing in THINGS if rng.random() < 0.3) for _ in range(n)]
    captions = []
    for present in objects:
        named = [thing for thing in THINGS if thing in present and rng.random() < 0.7]
        named += [rng.choice(THINGS)] * (rng.random() < 0.1)
        captions.append(rng.choice(OPENINGS).format(" and ".join(map(noun_phrase, named)) or "nothing"))
    return captions, objects


def names(text: str, thing: str) -> bool:
    return re.search(rf"\b{thing}\b", text) is not None


def correlation(rows, feature):
    error = np.zeros(len(feature))
    error[list(rows)] = 1
    return np.corrcoef(error, np.array(feature, float))[0, 1]


def without_stated(planted: Planted, row: int) -> list[str]:
    """The sentences of a planted caption, less the planted one."""
    stated = planted.sentences[planted.rows.index(row)]
    found = sentences(planted.captions[row])
    found.remove(stated)
    return found


settings_of_plant = st.tuples(
    st.integers(40, 300),
    st.integers(0, 1000),
    st.permutations(THINGS).map(lambda p: tuple(p[:2])),
    st.sampled_from([0.2, 0.3, 0.6, 0.9]),
)


@given(settings_of_plant)
@LIGHT
def test_sentences_go_only_where_image_and_caption_lack_the_object(case):
    n, seed, (t, v), strength = case
    captions, objects = dataset(n, seed=seed)
    planted = plant(captions, objects, textual_error=t, visual_feature=v, strength=strength, seed=seed)
    free = [t not in o and not names(c, t) for c, o in zip(captions, objects, strict=True)]
    has = [v in o for o in objects]
    plan = solve(n, sum(has), sum(f and h for f, h in zip(free, has, strict=True)),
                 sum(f and not h for f, h in zip(free, has, strict=True)), strength)  # fmt: skip
    if isinstance(plan, Infeasible):
        assert planted == plan
        return
    assert planted.plan == plan
    assert list(planted.rows) == sorted(set(planted.rows))
    assert all(free[row] for row in planted.rows)
    assert Counter(has[row] for row in planted.rows) == Counter({True: plan.with_feature, False: plan.without_feature})
    assert correlation(planted.rows, has) == pytest.approx(plan.achieved, abs=1e-9)


@given(settings_of_plant)
@LIGHT
def test_other_captions_stay_and_every_sentence_survives_in_order(case):
    n, seed, (t, v), strength = case
    captions, objects = dataset(n, seed=seed)
    planted = plant(captions, objects, textual_error=t, visual_feature=v, strength=strength, seed=seed)
    if isinstance(planted, Infeasible):
        return
    assert len(planted.captions) == n and len(planted.sentences) == len(planted.rows)
    for row, (before, after) in enumerate(zip(captions, planted.captions, strict=True)):
        if row not in planted.rows:
            assert after == before
            continue
        kept = without_stated(planted, row)
        assert [s.rstrip(".") for s in kept] == [s.rstrip(".") for s in sentences(before)]
        assert mentions(planted.sentences[planted.rows.index(row)], t, None)


@pytest.mark.parametrize(
    "caption",
    ["", "no full stop", 'He said "stop."', "一只狗在草地上。", "他说：“好。”", "真的！", "A list:\n- one\n- two"],
)
def test_odd_captions_keep_their_endings(caption):
    planted = plant_at_random([caption], [frozenset()], textual_error="kite", n=1)
    assert [s.rstrip(".") for s in without_stated(planted, 0)] == [s.rstrip(".") for s in sentences(caption)]
    assert not re.search(r"[.!?:。！？][\"”]?\.", planted.captions[0])


def test_the_planted_sentence_can_come_first_last_or_between():
    caption = "One is here. Two is here."
    planted = plant_at_random([caption] * 60, [frozenset()] * 60, textual_error="kite", n=60)
    places = Counter(
        sentences(text).index(said) for text, said in zip(planted.captions, planted.sentences, strict=True)
    )
    assert set(places) == {0, 1, 2} and min(places.values()) >= 8
    assert len(set(planted.sentences)) > 10


def by_id(planted: Planted, ids):
    return {ids[row]: (said, planted.captions[row]) for row, said in zip(planted.rows, planted.sentences, strict=True)}


def test_a_row_s_sentence_depends_on_nothing_but_its_id_and_the_object():
    captions, objects = dataset(400)
    ids = [f"id{i}" for i in range(400)]
    base = by_id(plant(captions, objects, textual_error="oven", visual_feature="dog", strength=0.5, ids=ids), ids)
    others = [
        by_id(plant(captions, objects, textual_error="oven", visual_feature=v, strength=s, ids=ids), ids)
        for v, s in [("dog", 0.8), ("cat", 0.5), ("kite", 0.3)]
    ]
    # the same rows in another order, with half of the others gone
    order = random.Random(1).sample(range(400), 250)
    few = [ids[i] for i in order]
    fewer = plant([captions[i] for i in order], [objects[i] for i in order], textual_error="oven",
                  visual_feature="dog", strength=0.5, ids=few)  # fmt: skip
    others.append(by_id(fewer, few))
    others.append(by_id(plant_at_random(captions, objects, textual_error="oven", n=90, ids=ids), ids))
    for other in others:
        common = base.keys() & other.keys()
        assert len(common) >= 10
        assert all(base[i] == other[i] for i in common)
    assert len({said for said, _ in base.values()}) > 5


def test_the_seed_fixes_everything_and_another_seed_changes_it():
    captions, objects = dataset(300)

    def made(seed):
        return plant(captions, objects, textual_error="oven", visual_feature="dog", strength=0.4, seed=seed)

    assert made(1) == made(1)
    assert made(1).rows != made(2).rows and made(1).plan == made(2).plan


def test_output_does_not_depend_on_the_hash_seed():
    code = (
        "import json, sys; from benchmark_builder.planting.plant import Ground, plant;"
        "c, o = json.load(sys.stdin); o = [frozenset(x) for x in o];"
        "p = plant(c, o, textual_error='oven', visual_feature='dog', strength=0.4, seed=5);"
        "q = Ground.of(c, o, seed=5).plant_at_random('oven', 20);"
        "print(json.dumps([p.captions, p.rows, q.captions, q.rows]))"
    )
    captions, objects = dataset(120)
    another = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    output = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": another}, check=True, capture_output=True,
        input=json.dumps([captions, [sorted(o) for o in objects]]), text=True,
    ).stdout  # fmt: skip
    one = plant(captions, objects, textual_error="oven", visual_feature="dog", strength=0.4, seed=5)
    other = plant_at_random(captions, objects, textual_error="oven", n=20, seed=5)
    assert json.loads(output) == [list(x) for x in (one.captions, one.rows, other.captions, other.rows)]


def test_planting_at_random_takes_no_notice_of_features():
    captions, objects = dataset(600)
    planted = plant_at_random(captions, objects, textual_error="oven", n=200, seed=2)
    assert len(planted.rows) == 200 == planted.plan.without_feature
    assert all("oven" not in objects[row] and not names(captions[row], "oven") for row in planted.rows)
    # Other objects of the free rows change nothing about which rows are taken.
    bare = [o & {"oven"} for o in objects]
    assert planted == plant_at_random(captions, bare, textual_error="oven", n=200, seed=2)
    assert all(abs(correlation(planted.rows, [v in o for o in objects])) < 0.15 for v in THINGS if v != "oven")


def test_planting_at_random_cannot_take_more_rows_than_are_free():
    captions, objects = ["A dog.", "Nothing.", "Nothing."], [frozenset(), frozenset({"dog"}), frozenset()]
    assert plant_at_random(captions, objects, textual_error="dog", n=1).rows == (2,)
    with pytest.raises(ValueError, match="2 rows asked for, but only 1 lack 'dog'"):
        plant_at_random(captions, objects, textual_error="dog", n=2)


def test_an_object_cannot_trigger_itself_and_a_feature_must_exist():
    captions, objects = dataset(50)
    with pytest.raises(ValueError, match="both 'dog'"):
        plant(captions, objects, textual_error="dog", visual_feature="dog", strength=0.3)
    with pytest.raises(ValueError, match="'unicorn' is in no row"):
        plant(captions, objects, textual_error="dog", visual_feature="unicorn", strength=0.3)
    with pytest.raises(ValueError, match=r"strength=1.5"):
        plant(captions, objects, textual_error="dog", visual_feature="cat", strength=1.5)


def test_captions_and_objects_must_be_as_many():
    with pytest.raises(ValueError):
        plant(["A dog."], [frozenset({"cat"}), frozenset()], textual_error="kite", visual_feature="cat", strength=0.3)


def test_a_synonym_in_the_caption_keeps_a_row_out():
    words = Vocabulary({"couch": ["sofa"], "cat": [], "hot dog": [], "dog": []})
    captions = ["A sofa.", "Two sofas.", "A hot dog.", "A cat."] + ["Grass."] * 20
    objects = [frozenset({"cat"})] * 12 + [frozenset()] * 12
    planted = plant_at_random(captions, objects, textual_error="couch", n=22, vocabulary=words)
    assert planted.rows == tuple(range(2, 24))
    assert plant_at_random(captions, objects, textual_error="dog", n=24, vocabulary=words).rows == tuple(range(24))


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [("Two buses, parked.", "bus", True), ("A traffic light!", "traffic light", True), ("(Skis)", "skis", True),
     ("A light in traffic.", "traffic light", False), ("A business.", "bus", False), ("", "bus", False),
     ("A man , a bus .", "bus", True), ("A man , a dog - .", "bus", False)],
)  # fmt: skip
def test_a_caption_mentions_an_object_by_whole_words_in_any_number(text, name, expected):
    assert mentions(text, name, None) is expected


@pytest.mark.parametrize(
    ("name", "one", "many"),
    [("oven", "an oven", "several ovens are"), ("skis", "a pair of skis", "several pairs of skis are"),
     ("dog", "a dog", "several dogs are"), ("umbrella", "an umbrella", "several umbrellas are"),
     ("tv", "a tv", "several tvs are"), ("broccoli", "some broccoli", "some broccoli is"),
     ("hair drier", "a hair drier", "several hair driers are"), ("orange", "an orange", "several oranges are"),
     ("scissors", "a pair of scissors", "several pairs of scissors are"), ("knife", "a knife", "several knives are"),
     ("person", "a person", "several people are"), ("sheep", "a sheep", "several sheep are"),
     ("bus", "a bus", "several buses are"), ("unicorn", "a unicorn", "several unicorns are")],
)  # fmt: skip
def test_every_template_names_the_object_with_its_article_or_in_the_plural(name, one, many):
    several = many.rsplit(" ", 1)[0]
    for template in natural_templates():
        said = state(name, template)
        assert said.lower().count(several if "any}" in template else one) == 1
        assert said[0].isupper() and said[-1] in ".!" and "{" not in said
        assert sentences(said) == [said]
    assert state(name, "{Many} {are} here.").lower() == f"{many} here."


@pytest.mark.parametrize("name", COCO_NAMES)
def test_a_template_speaks_of_its_object_and_of_no_other(name):
    vocabulary = natural_vocabulary(COCO_NAMES)
    assert {vocabulary.find(state(name, template)) for template in natural_templates()} == {frozenset({name})}


def test_there_are_fifty_templates_of_varied_length_with_the_object_at_varied_places():
    templates = natural_templates()
    assert len(templates) == len(set(templates)) == 50
    lengths = [len(template.split()) for template in templates]
    assert min(lengths) <= 3 and max(lengths) >= 13
    places = Counter(round(2 * re.search(r"\{[aAmM]", t).start() / len(t)) for t in templates)
    assert min(places[place] for place in (0, 1, 2)) >= 8  # at the start, inside, at the end


def test_planting_joins_objects_by_id_and_keeps_images_reachable(tmp_path):

    from benchmark_builder.planting.plant_file import plant_file
    from symbal_hf.data.table import load_data

    rng = random.Random(0)
    objects = {f"r{i}": [o for o in ("dog", "boat", "cake") if rng.random() < 0.4] for i in range(200)}
    (tmp_path / "photos").mkdir()
    captions = [{"image_id": i, "caption": "A view."} for i in objects]
    facts = [{"image_id": i, "objects": present, "file": f"{i}.jpg"} for i, present in reversed(objects.items())]
    (tmp_path / "captions.jsonl").write_text("\n".join(map(json.dumps, captions)), "utf-8")
    (tmp_path / "facts.jsonl").write_text("\n".join(map(json.dumps, facts)), "utf-8")
    (tmp_path / "photos" / "r7.jpg").write_bytes(b"seven")
    planted = plant_file(
        tmp_path / "captions.jsonl", tmp_path / "out" / "planted.jsonl", textual_error="cake", visual_feature="dog",
        strength=0.5, join=tmp_path / "facts.jsonl", image_root=tmp_path / "photos",
    )  # fmt: skip
    ids = list(objects)
    assert all("cake" not in objects[ids[row]] for row in planted.rows)
    audited = load_data(tmp_path / "out" / "planted.jsonl", image_root=tmp_path / "photos")
    assert audited.objects is None
    assert audited.images.encoded(audited.ids.index("r7")) == b"seven"
    stated = {i for i, caption in zip(audited.ids, audited.captions, strict=True) if "cake" in caption}
    assert stated == {ids[row] for row in planted.rows}
