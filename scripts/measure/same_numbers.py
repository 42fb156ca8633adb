"""Whether numbers moved: plant errors into real data, audit every file, and compare two such runs number by number.

Three steps, so that two checkouts of the package can be held against each other:

    python scripts/measure/same_numbers.py plant DATA FILES          # once
    python scripts/measure/same_numbers.py audit FILES before.json   # by either checkout
    python scripts/measure/same_numbers.py compare before.json after.json

It audits by `symbal_hf.audit` alone, so that nothing inside the package can make two runs agree. Numbers must be
equal to the last digit; what differs is printed, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import random
import sys
from collections import Counter
from pathlib import Path
from typing import Any

STRENGTHS = (0.3, 0.6, 0.9)
COMPOSITIONS: dict[str, dict[str, Any]] = {
    "look": {"scorer_1": "vision-language", "scorer_2": "vision-language"},
    "read": {"scorer_1": "text-only", "scorer_2": "text-only", "captioner": "CHAT"},
    "mixed, phrases": {"scorer_1": "vision-language", "scorer_2": "text-only", "captioner": "CHAT", "method": "paper"},
    "look, phrases": {"scorer_1": "vision-language", "scorer_2": "vision-language", "method": "paper"},
    "read, text-only": {
        "scorer_1": "text-only", "scorer_2": "text-only", "captioner": "CHAT", "method": "paper",
        "summarizer_1": "text-only", "summarizer_2": "text-only",
    },
    "look, vision-language": {
        "scorer_1": "vision-language", "scorer_2": "vision-language", "method": "paper",
        "summarizer_1": "text-only", "summarizer_2": "vision-language",
    },
}  # fmt: skip


def plant(data: Path, folder: Path, *, settings: int, scene_settings: int) -> None:
    """Write a JSONL file a setting, and jobs.json: what to audit, with which options."""
    from benchmark_builder.bases.open_bases import scenes_base
    from benchmark_builder.bases.photos import photo_base, text_base

    folder.mkdir(parents=True, exist_ok=True)
    chair = str((data / "mllm_coco" / "chair_vocab.json").resolve())
    photos, texts = photo_base(data / "coco"), text_base(data / "coco" / "text" / "captions_val2017_all5000.jsonl")
    with (data / "symbalbench_table3.csv").open(encoding="utf-8", newline="") as file:
        pairs = [(row["t"], row["v"]) for row in csv.DictReader(file) if row["domain"] == "natural"]
    jobs: list[dict[str, Any]] = []
    for base, judge, options in (
        (photos, "embedding", [{"scorer": "embedding"}, {"scorer": "embedding", "method": "paper"}]),
        (texts, "reference", [{"scorer": "reference"}]),
        (texts, "objects", [{"scorer": "objects", "vocabulary": chair}]),
    ):
        for name, rows in _planted(base, pairs, judge, chair, settings):
            _write(folder / f"{name}.jsonl", rows)
            jobs += [{"file": f"{name}.jsonl", "options": one} for one in options]
    for name in ("llava_v0_13b", "mplug_owl", "minigpt4"):
        for path in sorted((data / "mllm_coco" / "mllm_captions").glob("*.jsonl")):
            if name in path.stem.lower().replace("-", "_"):
                join = str((data / "mllm_coco" / "objects_chair.jsonl").resolve())
                options = {"join": join, "vocabulary": chair, "top_k": 10}
                jobs.append({"file": str(path.resolve()), "options": options})
    for path in sorted((data / "coco" / "lstm_captions").glob("*.jsonl")):
        root, join = str((data / "coco").resolve()), str((data / "coco" / "objects.jsonl").resolve())
        shared = {"image_root": root, "join": join}
        for method in ("association", "paper"):
            jobs.append({"file": str(path.resolve()), "options": {**shared, "scorer": "embedding", "method": method}})
        jobs.append({"file": str(path.resolve()), "options": {**shared, "scorer": "objects", "top_k": 10}})
    scenes = scenes_base(folder / "scenes", rows=300, seed=71)
    drawn = sorted({name for present in scenes.objects for name in present})
    natural = [(t, v) for t in drawn for v in drawn]
    for name, rows in _planted(scenes, natural, "scenes", None, scene_settings):
        _write(folder / f"{name}.jsonl", rows)
        jobs += [{"file": f"{name}.jsonl", "options": one, "named": label} for label, one in COMPOSITIONS.items()]
    (folder / "jobs.json").write_text(json.dumps(jobs, indent=1), encoding="utf-8")
    print(f"{len(jobs)} audits to run")


def _planted(base: Any, pairs: list[tuple[str, str]], judge: str, chair: str | None, settings: int) -> Any:
    """Name and rows of each setting that is feasible, strengths .3, .6 and .9 in turn."""
    from benchmark_builder.planting.plant import Planted, plant
    from symbal_hf.data.vocabulary import load_vocabulary
    from symbal_hf.language.phrases import Vocabulary

    vocabulary = Vocabulary(load_vocabulary(chair)) if chair else None
    count = Counter(name for present in base.objects for name in present)
    usable = [pair for pair in pairs if count[pair[1]] >= 30 and count[pair[0]] and pair[0] != pair[1]]
    random.Random(11).shuffle(usable)
    made = 0
    for turn, (t, v) in enumerate(usable):
        for strength in (*STRENGTHS[turn % 3 :], *STRENGTHS[: turn % 3]):
            found = plant(
                base.captions,
                base.objects,
                textual_error=t,
                visual_feature=v,
                strength=strength,
                seed=turn,
                ids=base.ids,
                vocabulary=vocabulary,
            )
            if isinstance(found, Planted):
                yield f"{judge}-{made:02d}-{t}-{v}-{strength}".replace(" ", "_"), list(_rows(base, found, judge))
                made += 1
                break
        if made == settings:
            return


def _rows(base: Any, found: Any, judge: str) -> Any:
    for i, (name, caption) in enumerate(zip(base.ids, found.captions, strict=True)):
        row: dict[str, Any] = {"image_id": name, "caption": caption}
        if judge == "reference":
            row["references"] = list(base.references[i])
        elif judge == "objects":
            row["objects"] = sorted(base.objects[i])
        else:
            row["image"] = str(Path(base.images[i]).resolve())
        yield row


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def audit(folder: Path, out: Path, *, chat: str, store: Path | None, only: str) -> None:
    """Audit every job by the package that is on the path; `out` keeps what is done, so that it may be interrupted."""
    import symbal_hf
    from symbal_hf.core.store import Store

    jobs = json.loads((folder / "jobs.json").read_text(encoding="utf-8"))
    results = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {}
    kept = Store(store)
    for number, job in enumerate(jobs, 1):
        key = json.dumps([Path(job["file"]).stem, job.get("named"), sorted(job["options"])])
        if "named" not in job:
            key = json.dumps(
                [Path(job["file"]).stem, {k: job["options"][k] for k in ("scorer", "method") if k in job["options"]}]
            )
        if key in results or only not in key:
            continue
        options = {k: (chat if v == "CHAT" else v) for k, v in job["options"].items()}
        source = folder / job["file"]
        if "named" in job:
            options["chat"] = chat
        if ("image_root" not in options and options.get("scorer") == "embedding") or "named" in job:
            options["image_root"] = "/"
        results[key] = told(symbal_hf.audit(source, store=kept, on_bad_row="error", **options))
        out.write_text(json.dumps(results), encoding="utf-8")
        print(f"{number}/{len(jobs)} {key}: {results[key]['verdict']}", flush=True)


def told(result: Any) -> dict[str, Any]:
    """Everything a result says but where it was made."""
    data = json.loads(json.dumps(result.to_dict()))
    provenance = data.pop("provenance", {})
    data["kept"] = {k: provenance.get(k) for k in ("preset", "method", "scorer", "seed", "rows_sha256", "classes")}
    return data


def compare(before: Path, after: Path) -> int:
    """Print what differs and return how many results do."""
    old, new = (json.loads(path.read_text(encoding="utf-8")) for path in (before, after))
    different = 0
    for key in sorted(old.keys() | new.keys()):
        if key not in old or key not in new:
            print(f"{key}: only {'after' if key in new else 'before'}")
            different += 1
        elif gaps := list(_gaps(old[key], new[key], "")):
            print(f"{key}: " + "; ".join(gaps[:3]))
            different += 1
    same = len(old.keys() & new.keys()) - sum(key in old and key in new and old[key] != new[key] for key in old)
    print(f"{same} of {len(old)} results are equal to the last digit")
    return different


def _gaps(old: Any, new: Any, path: str) -> Any:
    if isinstance(old, dict) and isinstance(new, dict):
        for name in old.keys() | new.keys():
            yield from _gaps(old.get(name), new.get(name), f"{path}.{name}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for i, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from _gaps(one, other, f"{path}[{i}]")
    elif old != new and not (isinstance(old, float) and isinstance(new, float) and math.isnan(old) and math.isnan(new)):
        yield f"{path}: {str(old)[:60]} -> {str(new)[:60]}"


def main() -> int:
    """Run one step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("plant", "audit", "compare"))
    parser.add_argument("one", type=Path)
    parser.add_argument("two", type=Path)
    parser.add_argument("--settings", type=int, default=30, help="planted in each of three bases")
    parser.add_argument("--scene-settings", type=int, default=5, help="planted in scenes, for six compositions")
    parser.add_argument("--chat", default="hf:tests/assets/scene_mllm", help="the chat model of the compositions")
    parser.add_argument("--store", type=Path, help="where embeddings and answers are kept")
    parser.add_argument("--only", default="", help="results whose key holds this")
    args = parser.parse_args()
    if args.step == "plant":
        plant(args.one, args.two, settings=args.settings, scene_settings=args.scene_settings)
    elif args.step == "audit":
        audit(args.one, args.two, chat=args.chat, store=args.store, only=args.only)
    else:
        return bool(compare(args.one, args.two))
    return 0


if __name__ == "__main__":
    sys.exit(main())
