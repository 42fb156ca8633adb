"""What must be true of the drawn scenes and of the captions that the grammar writes about them."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest

import benchmark_builder
from benchmark_builder.scenes.backgrounds import PLACES
from benchmark_builder.scenes.compose import PATTERNS, compose_captions, in_place, noun_phrase
from benchmark_builder.scenes.draw import (
    BACKGROUND_NAMES,
    OBJECT_NAMES,
    Scene,
    draw_layers,
    flatten,
    make_scene,
    visible_masks,
    write_scenes,
)
from benchmark_builder.scenes.drawings import FOLDER
from benchmark_builder.scenes.objects import KIND_BY_NAME

_PHOTO_NAMES = (
    "person,bicycle,car,motorcycle,airplane,bus,train,truck,boat,traffic light,fire hydrant,stop sign,parking meter,"
    "bench,bird,cat,dog,horse,sheep,cow,elephant,bear,zebra,giraffe,backpack,umbrella,handbag,tie,suitcase,frisbee,"
    "skis,snowboard,sports ball,kite,baseball bat,baseball glove,skateboard,surfboard,tennis racket,bottle,wine glass,"
    "cup,fork,knife,spoon,bowl,banana,apple,sandwich,orange,broccoli,carrot,hot dog,pizza,donut,cake,chair,couch,"
    "potted plant,bed,dining table,toilet,tv,laptop,mouse,remote,keyboard,cell phone,microwave,oven,toaster,sink,"
    "refrigerator,book,clock,vase,scissors,teddy bear,hair drier,toothbrush"
)
PHOTO_NAMES = _PHOTO_NAMES.split(",")
EVERY_NAME = sorted({*PHOTO_NAMES, *OBJECT_NAMES}, key=lambda name: (-len(name), name))
SMALL = 128  # pixels; scenes of this size are drawn in a fraction of the time


@pytest.fixture(scope="module")
def many() -> list[Scene]:
    return [make_scene(index, size=SMALL)[0] for index in range(450)]


def named_in(text: str) -> set[str]:
    """The object names that a text contains as words, where "teddy bear" does not count as "bear" too."""
    found = set()
    for name in EVERY_NAME:
        text, hits = re.subn(rf"\b{re.escape(name)}s?\b", "#", text, flags=re.IGNORECASE)
        if hits:
            found.add(name)
    return found


def digest(index: int, seed: int = 0) -> str:
    scene, picture = make_scene(index, seed=seed, size=SMALL)
    return hashlib.sha256(picture.tobytes() + repr(scene).encode()).hexdigest()


def test_enough_variety_of_objects_and_backgrounds(many: list[Scene]) -> None:
    assert len(OBJECT_NAMES) >= 26
    assert len(BACKGROUND_NAMES) >= 7
    assert {scene.background for scene in many} == set(BACKGROUND_NAMES)
    assert {item.name for scene in many for item in scene.objects} == set(OBJECT_NAMES)


def test_every_object_and_place_has_its_drawing_and_places_name_objects_that_there_are() -> None:
    drawn = {path.stem.replace("_", " ") for path in (FOLDER / "objects").glob("*.jinja")}
    assert drawn == set(OBJECT_NAMES)
    assert {path.stem.replace("_", " ") for path in (FOLDER / "places").glob("*.jinja")} == {*BACKGROUND_NAMES, "parts"}
    assert all(set(place.usual) <= drawn for place in PLACES)


def test_scenes_hold_one_to_five_different_objects(many: list[Scene]) -> None:
    counts = [len(scene.objects) for scene in many]
    assert set(counts) == {1, 2, 3, 4, 5}
    assert 2.7 < np.mean(counts) < 3.3
    assert all(len({item.name for item in scene.objects}) == len(scene.objects) for scene in many)


def test_objects_keep_to_their_places_but_not_only(many: list[Scene]) -> None:
    seen: dict[str, Counter[str]] = defaultdict(Counter)
    for scene in many:
        seen[scene.background].update(item.name for item in scene.objects)
    assert seen["kitchen"]["oven"] > 3 * seen["street"]["oven"]
    assert seen["street"]["bus"] > 3 * seen["kitchen"]["bus"]
    assert seen["beach"]["boat"] > 3 * seen["office"]["boat"]
    spread = {name: sum(1 for place in BACKGROUND_NAMES if seen[place][name]) for name in OBJECT_NAMES}
    assert np.mean(list(spread.values())) > 3.5


def test_boxes_and_areas_are_possible(many: list[Scene]) -> None:
    for scene in many:
        for item in scene.objects:
            x, y, width, height = item.box
            assert 0 <= x < x + width <= 1
            assert 0 <= y < y + height <= 1
            assert 0.01 <= item.area_fraction <= width * height + 1e-9 < 1


def test_sizes_of_an_object_vary(many: list[Scene]) -> None:
    areas: dict[str, list[float]] = defaultdict(list)
    for scene in many:
        for item in scene.objects:
            areas[item.name].append(item.area_fraction)
    assert all(max(values) > 1.5 * min(values) for values in areas.values() if len(values) >= 8)


@pytest.mark.parametrize("index", range(12))
def test_boxes_are_those_of_the_visible_pixels(index: int) -> None:
    scene, _ = make_scene(index, size=SMALL)
    layers = draw_layers(index, size=SMALL)
    masks = visible_masks(layers)
    assert np.sum(masks, axis=0).max() <= 1, "no pixel shows two objects"
    for item, mask in zip(scene.objects, masks, strict=True):
        pixels = [(column, row) for row in range(SMALL) for column in range(SMALL) if mask[row, column]]
        left, right = min(column for column, _ in pixels), max(column for column, _ in pixels)
        top, bottom = min(row for _, row in pixels), max(row for _, row in pixels)
        assert item.box == pytest.approx(tuple(v / SMALL for v in (left, top, right - left + 1, bottom - top + 1)))
        assert item.area_fraction == len(pixels) / SMALL**2


@pytest.mark.parametrize("index", range(20, 32))
def test_taking_an_object_away_changes_the_picture_where_its_mask_says(index: int) -> None:
    layers = draw_layers(index, size=SMALL)
    whole = np.asarray(flatten(layers), dtype=int)
    for item, mask in zip(layers.placed, visible_masks(layers), strict=True):
        changed = np.abs(whole - np.asarray(flatten(layers, without=item.name), dtype=int)).max(axis=2) > 0
        assert changed[mask].mean() > 0.9
        if KIND_BY_NAME[item.name].zone != "ground":  # those cast no shadow beside them
            around = mask.copy()
            for shift in (-1, 1):
                for axis in (0, 1):
                    around |= np.roll(mask, shift, axis=axis) | np.roll(np.roll(mask, shift, 0), -shift, 1)
            around |= np.roll(np.roll(mask, 1, 0), 1, 1) | np.roll(np.roll(mask, -1, 0), -1, 1)
            stray = changed & ~around
            assert stray.sum() <= 0.05 * mask.sum(), "only hairlines thinner than half a pixel may lie outside"


def test_no_object_hides_another() -> None:
    for index in range(40):
        layers = draw_layers(index, size=SMALL)
        for item, visible in zip(layers.placed, visible_masks(layers), strict=True):
            assert visible.sum() >= 0.9 * item.mask.sum()


def test_a_scene_depends_on_seed_index_and_size_only() -> None:
    code = (
        "from benchmark_builder.scenes.draw import make_scene; import hashlib, sys\n"
        f"for i in (7, 3, 0):\n    s, p = make_scene(i, seed=5, size={SMALL})\n"
        "    sys.stdout.write(hashlib.sha256(p.tobytes() + repr(s).encode()).hexdigest() + chr(10))"
    )
    root = str(Path(benchmark_builder.__file__).resolve().parents[1])
    environment = {**os.environ, "PYTHONHASHSEED": "4242", "PYTHONPATH": root}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    here = {index: digest(index, seed=5) for index in (0, 3, 7)}
    assert done.stdout.split() == [here[7], here[3], here[0]]


def test_other_seeds_and_indices_give_other_scenes() -> None:
    assert len({digest(index, seed) for index in range(4) for seed in range(4)}) == 16


def test_global_random_state_is_left_alone() -> None:
    before, before_numpy = random.getstate(), repr(np.random.get_state())
    make_scene(3, size=SMALL)
    assert random.getstate() == before
    assert repr(np.random.get_state()) == before_numpy


@pytest.mark.parametrize("size", [64, 96, 256])
def test_pictures_have_the_size_asked_for(size: int) -> None:
    _, picture = make_scene(1, size=size)
    assert (picture.mode, picture.size) == ("RGB", (size, size))


def test_captions_name_only_what_is_there_and_something_that_is(many: list[Scene]) -> None:
    for scene in many:
        present = {item.name for item in scene.objects}
        assert len(set(scene.captions)) == len(scene.captions) == 5
        for caption in scene.captions:
            assert named_in(caption) <= present, caption
            assert named_in(caption), caption
            assert caption[0].isupper()
            assert caption.endswith(".")
            assert caption.count(".") == 1


def test_five_captions_together_nearly_cover_the_scene(many: list[Scene]) -> None:
    missed = [len({item.name for item in scene.objects} - named_in(" ".join(scene.captions))) for scene in many]
    assert np.mean([count == 0 for count in missed]) > 0.95
    spoken = [len(named_in(caption)) for scene in many if len(scene.objects) > 3 for caption in scene.captions]
    assert max(spoken) <= 3
    assert np.mean(spoken) < 2.5, "a caption is not a list of all there is"


def test_positions_in_captions_are_true(many: list[Scene]) -> None:
    checked = 0
    for scene in many:
        for caption in scene.captions:
            for item in scene.objects:
                said = re.search(rf"{item.name}(?: in [a-z]+)? on the (left|right)", caption, flags=re.IGNORECASE)
                if said:
                    centre, checked = item.box[0] + item.box[2] / 2, checked + 1
                    assert centre < 0.4 if said[1] == "left" else centre > 0.6, caption
    assert checked > 20


def test_no_pattern_names_an_object() -> None:
    patterns = [pattern for group in PATTERNS.values() for pattern in group]
    assert len(set(patterns)) == len(patterns) >= 25
    for pattern in patterns:
        assert not named_in(re.sub(r"\{\w+\}", "#", pattern)), pattern


def test_captions_of_photo_class_names_name_nothing_else() -> None:
    rng = random.Random(8)
    for trial in range(400):
        names = rng.sample(PHOTO_NAMES, rng.randint(1, 7))
        place = rng.choice([None, *BACKGROUND_NAMES])
        captions = compose_captions(names, rng=random.Random(trial), place=place, attributes={names[0]: "red"})
        assert len(captions) == 5
        for caption in captions:
            assert named_in(caption), caption
            assert named_in(caption) <= set(names), (names, caption)
            assert not re.search(r"\ba [aeio]|\ban [^aeiou]|  |[{}]", caption), caption


def test_captions_without_objects_speak_of_the_place() -> None:
    for place in (None, *BACKGROUND_NAMES):
        captions = compose_captions([], rng=random.Random(1), place=place)
        assert len(set(captions)) == 5
        assert not any(named_in(caption) for caption in captions)


@pytest.mark.parametrize(
    ("name", "count", "colour", "expected"),
    [
        ("umbrella", 1, "", "an umbrella"),
        ("umbrella", 1, "red", "a red umbrella"),
        ("skis", 1, "blue", "a pair of blue skis"),
        ("scissors", 2, "", "two pairs of scissors"),
        ("bus", 2, "", "two buses"),
        ("person", 3, "", "three people"),
        ("person", 1, "green", "a person in green"),
        ("sheep", 9, "", "several sheep"),
        ("knife", 2, "", "two knives"),
        ("broccoli", 1, "", "some broccoli"),
    ],
)
def test_noun_phrases_are_english(name: str, count: int, colour: str, expected: str) -> None:
    assert noun_phrase(name, count, colour=colour) == expected


def test_places_take_their_preposition() -> None:
    assert [in_place(place) for place in ("kitchen", "office", "beach")] == [
        "in a kitchen",
        "in an office",
        "on a beach",
    ]


def test_a_written_folder_is_complete_and_used_again(tmp_path: Path) -> None:
    metadata = write_scenes(tmp_path, 4, seed=3, size=64)
    rows = [json.loads(line) for line in metadata.read_text("utf-8").splitlines()]
    assert [row["image_id"] for row in rows] == [0, 1, 2, 3]
    for row in rows:
        assert set(row) == {"image_id", "image", "background", "objects", "boxes", "captions"}
        assert (tmp_path / row["image"]).stat().st_size > 0
        assert row["objects"] == sorted(box["name"] for box in row["boxes"])
    stamp = metadata.stat().st_mtime_ns
    assert write_scenes(tmp_path, 4, seed=3, size=64).stat().st_mtime_ns == stamp

    write_scenes(tmp_path, 2, seed=3, size=64)
    assert len(list((tmp_path / "images").glob("*.jpg"))) == 2
    assert metadata.read_text("utf-8").splitlines() == [json.dumps(row) for row in rows[:2]]


def test_an_interrupted_folder_is_done_again(tmp_path: Path) -> None:
    metadata = write_scenes(tmp_path, 2, size=64)
    text = metadata.read_text("utf-8")
    metadata.unlink()  # the metadata comes last, so its absence means that the writing was cut short
    next((tmp_path / "images").iterdir()).unlink()
    assert write_scenes(tmp_path, 2, size=64).read_text("utf-8") == text
    assert len(list((tmp_path / "images").iterdir())) == 2
