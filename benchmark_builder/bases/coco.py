"""The natural base: COCO 2017 photos as the user downloaded them (paper appendix B)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from benchmark_builder.bases.base import Base, caption_and_references
from benchmark_builder.bases.coco_names import natural_vocabulary
from benchmark_builder.bases.files import image_files
from symbal_hf.core.errors import BadData

EXPECTED = 4349  # images of val2017 with an object of at least 5 % of the image, by the paper
CAPTIONS_OF_AN_IMAGE = 2  # at least; the caption takes two and leaves the others as references


def coco_base(
    folder: Path,
    *,
    split: str = "val2017",
    min_area: float = 0.05,
    small_objects: Literal["present", "ignored"] = "present",
    images: bool = True,
    seed: int = 0,
) -> Base:
    """Photos with two of their captions, the other captions as references, and their larger objects.

    Args:
        folder: holds annotations/instances_SPLIT.json, annotations/captions_SPLIT.json and the photos in SPLIT/.
        split: "val2017" in the paper.
        min_area: smallest share of the image, in [0, 1], by the area of its mask, at which an object counts.
        small_objects: "present": an error is not planted where the photo has the object, however small; "ignored": what
            is too small to count as a feature is no obstacle either.
        images: False builds a text base without looking for the photos.
        seed: which captions are drawn.

    Raises:
        BadData: a missing, truncated or inconsistent file, named in the message.
    """
    if not 0 <= min_area <= 1:
        raise ValueError(f"min_area={min_area} is outside [0, 1]; the paper takes 0.05.")
    annotations = folder / "annotations"
    instances_file, captions_file = annotations / f"instances_{split}.json", annotations / f"captions_{split}.json"
    instances = read_json(instances_file, ("images", "annotations", "categories"))
    captions = _captions(captions_file)
    names = {category["id"]: category["name"] for category in instances["categories"]}
    areas, small = _areas(instances, names, instances_file, min_area)
    file_of = {image["id"]: image["file_name"] for image in instances["images"]}
    kept = sorted(image_id for image_id in areas if areas[image_id])
    if not kept:
        raise BadData(f"{instances_file}: no image has an object of at least {min_area:.0%} of its area.")
    for image_id in kept:
        if (known := len(captions.get(image_id, ()))) < CAPTIONS_OF_AN_IMAGE:
            raise BadData(
                f"{captions_file}: image {image_id} has {known} captions with text; at least {CAPTIONS_OF_AN_IMAGE} "
                "are needed. Are both files of the same split?"
            )
    texts = [caption_and_references(captions[image_id], seed=seed, row_id=str(image_id)) for image_id in kept]
    photos = (folder / split / file_of[image_id] for image_id in kept)
    tiny = tuple(frozenset(small[image_id] - areas[image_id].keys()) for image_id in kept)
    return Base(
        ids=tuple(str(image_id) for image_id in kept),
        captions=tuple(caption for caption, _ in texts),
        objects=tuple(frozenset(areas[image_id]) for image_id in kept),
        images=image_files(photos, "unpack all photos or build without (--no-images)") if images else None,
        references=tuple(others for _, others in texts),
        also_present=tiny if small_objects == "present" else None,
        areas=tuple(areas[image_id] for image_id in kept),
        vocabulary=natural_vocabulary(names.values()),
        name="natural",
        origin="coco",
        licence="Annotations and captions CC BY 4.0 (COCO consortium); photos under their Flickr terms of use.",
        notes=(
            f"{len(kept):,} of {len(areas):,} images of {split} show an object of at least {min_area:.0%} of the image "
            f"(the paper has {EXPECTED:,}).",
            "Smaller objects are no features, "
            + ("and no error is planted where one is." if small_objects == "present" else "and are otherwise ignored."),
        ),
    )


def _areas(
    instances: dict[str, Any], names: dict[int, str], path: Path, min_area: float
) -> tuple[dict[int, dict[str, float]], dict[int, set[str]]]:
    """By image the shares of its area of large objects, and the names of small ones."""
    size = {}
    for image in instances["images"]:
        size[image["id"]] = image["width"] * image["height"]
        if size[image["id"]] <= 0:
            raise BadData(f"{path}: image {image['id']} is {image['width']} x {image['height']} pixels.")
    areas: dict[int, dict[str, float]] = {image_id: {} for image_id in size}
    small: dict[int, set[str]] = {image_id: set() for image_id in size}
    for instance in instances["annotations"]:
        image_id, name = instance["image_id"], names.get(instance["category_id"])
        if image_id not in size:
            raise BadData(f"{path}: annotation {instance['id']} is of image {image_id}, which the file does not list.")
        if name is None:
            raise BadData(f"{path}: annotation {instance['id']} has the unknown category {instance['category_id']}.")
        share = instance["area"] / size[image_id]
        if share >= min_area:
            areas[image_id][name] = min(1.0, areas[image_id].get(name, 0.0) + share)
        else:
            small[image_id].add(name)
    return areas, small


def read_json(path: Path, keys: tuple[str, ...]) -> dict[str, Any]:
    """One of COCO's files, with a list under each of `keys`."""
    if not path.is_file():
        raise BadData(
            f"no file {path}; give the folder that holds COCO's annotations/ and its photos, as the archives unpack."
        )
    try:
        data = json.loads(path.read_bytes())
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise BadData(f"{path} is no valid JSON ({error}); is the download cut off?") from error
    if not isinstance(data, dict) or (missing := [key for key in keys if not isinstance(data.get(key), list)]):
        lacking = ", ".join(missing) if isinstance(data, dict) else ", ".join(keys)
        raise BadData(f"{path} has no list {lacking}; it is not COCO's file of this name.")
    return data


def _captions(path: Path) -> dict[int, list[str]]:
    """Captions with a letter in them by image id, in the order of their own ids."""
    out: dict[int, list[str]] = {}
    for one in sorted(read_json(path, ("annotations",))["annotations"], key=lambda one: one["id"]):
        if not isinstance(one.get("caption"), str):
            raise BadData(f"{path}: annotation {one['id']} has no caption; is it another file of COCO?")
        if any(c.isalnum() for c in one["caption"]):
            out.setdefault(one["image_id"], []).append(one["caption"])
    return out
