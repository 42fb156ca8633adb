"""What audits by pixels find, suspect and miss: planted errors, true captions that are hard to see, real captioners.

Pairs for choosing ("tuning") and for the tables ("test") are apart, and so are their seeds. Whether a finding on real
captions is true is told by COCO's objects where its t is one of their 80 classes; all others are printed for looking.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from eval_planted import STRENGTHS, Bench, pairs_of
from statistics_study import SEVERAL
from tqdm import tqdm

from benchmark_builder.bases.base import sentence
from benchmark_builder.bases.photos import held_out
from benchmark_builder.planting.inject import Infeasible
from benchmark_builder.planting.plant import Ground, plant
from symbal_hf.auditing.engine import association_pairs
from symbal_hf.auditing.evidence import Evidence, Kept, gather
from symbal_hf.auditing.verdict import conclude
from symbal_hf.data.table import AuditData, Images
from symbal_hf.models.detectors.nanodet import CLASSES
from symbal_hf.results.findings import AuditResult, Finding
from symbal_hf.stats.contingency import wilson

FEWEST = 5  # images with t and v in which the judge argues against t
SENTENCES = ("There is a {} in the picture.", "A {} can be seen.", "Nearby there is a {}.", "The picture shows a {}.")


class Study(Bench):
    """The photos never trained on, and audits of any captions of them."""

    def __init__(self, data: Path, part: str) -> None:
        super().__init__(data, "embedding")
        self.part = part
        coco = data / "coco"
        self.truth = {
            str(row["image_id"]): frozenset(row["chair_objects"])
            for row in map(json.loads, (coco / "objects.jsonl").open())
        }
        self.files = {
            str(row["image_id"]): str(coco / row["file"]) for row in map(json.loads, (coco / "objects.jsonl").open())
        }

    def evidence(self, ids: Sequence[str], captions: Sequence[str], kept: Kept | None) -> Evidence:
        """Everything that an audit of these captions works on."""
        images = Images([self.files[name] for name in ids], range(len(ids)), None)
        data = AuditData(tuple(ids), tuple(captions), None, None, images, (), "study")
        return gather(data, self.parts, on_bad_row="error", kept=kept)

    def result(self, ids: Sequence[str], captions: Sequence[str], kept: Kept | None = None) -> AuditResult:
        """An audit by pixels with the usual gates."""
        evidence = self.evidence(ids, captions, kept)
        return conclude(evidence, association_pairs(evidence))

    def pairs(self) -> list[tuple[str, str]]:
        """The pairs of this part."""
        table = self.data / "symbalbench_table3.csv"
        return pairs_of(self.base, table, which="random" if self.part == "tuning" else "table")

    def really_wrong(self, finding: Finding) -> float | None:
        """Share of the rejected rows with v whose image truly lacks t; None where t is none of the classes."""
        t = self.vocabulary.class_of(finding.textual_error)
        rows = [row.row_id for row in finding.affected if row.has_feature]
        return None if t is None or not rows else float(np.mean([t not in self.truth[row] for row in rows]))


def told(finding: Finding, wrong: float | None) -> str:
    """One line of a finding."""
    by = f"{finding.confirmed_by} {finding.confirmed_rows}/{finding.witness_rows}"
    return (
        f"{finding.state} ({finding.textual_error}, {finding.visual_feature}) p {finding.p_value_corrected:.1e}, "
        f"{finding.errors_with_feature}/{finding.rows_with_feature} against {finding.errors_without_feature}/"
        f"{finding.rows_without_feature}, by {by}, "
        f"truly wrong {'?' if wrong is None else f'{wrong:.2f}'} {finding.reason[:90]}"
    )


def planted(study: Study, most: int) -> None:
    """Errors that were planted, one strength a pair."""
    hits: dict[float, list[tuple[bool, bool, bool]]] = {strength: [] for strength in STRENGTHS}
    stray, seed = [], 0 if study.part == "tuning" else 5_000
    for turn, (t, v) in enumerate(tqdm(study.pairs(), desc="planted", mininterval=10)):
        if sum(map(len, hits.values())) == most:
            break
        for strength in (*STRENGTHS[turn % 3 :], *STRENGTHS[: turn % 3]):
            made = plant(study.base.captions, study.base.objects, textual_error=t, visual_feature=v, strength=strength,
                         seed=seed + turn, ids=study.base.ids, vocabulary=study.vocabulary)  # fmt: skip
            if isinstance(made, Infeasible):
                continue
            result = study.result(study.base.ids, made.captions, study.kept)
            names = result.prediction()
            both = study.named(names["textual_error"], t, 1) and study.named(names["visual_feature"], v, 1)
            mine = [f for f in (*result.findings, *result.suspects) if f.state != "candidate"]
            right = [f for f in mine if study.named([f.textual_error], t, 1) and study.named([f.visual_feature], v, 1)]
            found = bool(result.findings) and result.findings[0] in right
            hits[strength].append((both, found, bool(right)))
            stray += [(t, v, strength, f) for f in result.findings if not study.named([f.textual_error], t, 1)]
            if not found:
                top = right[0] if right else (*result.findings, *result.suspects)[0]
                print("not found", t, "|", v, strength, told(top, study.really_wrong(top)))
            break
    print(f"\nplanted, {study.part} pairs\n| V | settings | both@1 | found@1 | found or suspected |")
    print("|---|---|---|---|---|")
    everything = [hit for some in hits.values() for hit in some]
    for label, rows in (("all", everything), *((str(strength), hits[strength]) for strength in STRENGTHS)):
        shares = [f"{np.mean([r[i] for r in rows]):.2f} {interval([r[i] for r in rows])}" for i in range(3)]
        print(f"| {label} | {len(rows)} | " + " | ".join(shares) + " |")
    others = (f"{t} | {v} {strength}: {told(f, study.really_wrong(f))}" for t, v, strength, f in stray)
    print(f"found that was not planted: {len(stray)}", *others, sep="\n  ")


def among(study: Study, findings: Sequence[Finding], t: str, v: str) -> bool:
    """Whether one of the findings names t and v."""
    return any(study.named([f.textual_error], t, 1) and study.named([f.visual_feature], v, 1) for f in findings)


def several(study: Study, runs: int) -> None:
    """Several errors at once, each at one of the two higher strengths: how many pairs are found, or suspected."""
    print(f"\n| planted, {study.part} pairs, {runs} audits each | found | found or suspected | other findings |")
    print("|---|---|---|---|")
    for name, together in SEVERAL.items():
        found, told_of, strange, rng, made = list[bool](), list[bool](), 0, random.Random(f"{study.part} {name}"), 0
        while made < runs:
            some = together(*rng.sample(study.pairs(), 3 if name == "three pairs" else 2))
            names, captions = {t for t, _ in some} | {v for _, v in some}, list(study.base.captions)
            if len(names) < (3 if "with" in name else 2 * len(some)):
                continue
            for t, v in some:
                out = plant(captions, study.base.objects, textual_error=t, visual_feature=v, ids=study.base.ids,
                            strength=rng.choice(STRENGTHS[1:]), seed=made, vocabulary=study.vocabulary)  # fmt: skip
                if isinstance(out, Infeasible):
                    break
                captions = list(out.captions)
            else:
                made += 1
                result = study.result(study.base.ids, captions, study.kept)
                for t, v in some:
                    found.append(among(study, result.findings, t, v))
                    told_of.append(among(study, (*result.findings, *result.suspected), t, v))
                strange += sum(not any(study.named([f.textual_error], t, 1) for t, _ in some) for f in result.findings)
        shares = " | ".join(f"{np.mean(hits):.2f} {interval(hits)}" for hits in (found, told_of))
        print(f"| {name} | {shares} | {strange} |", flush=True)


def split(text: str) -> list[str]:
    """The sentences of a caption."""
    return [part if part.endswith(".") else f"{part}." for part in text.split(". ")]


def interval(hits: Sequence[bool]) -> str:
    """The 95 % interval of a share."""
    low, high = wilson(sum(hits), len(hits))
    return f"[{low:.2f}, {high:.2f}]"


def hard_but_true(study: Study, most: int) -> None:
    """True captions whose t is stated beside v just where the judge does not see it: every finding is false."""
    study.evidence(study.base.ids, study.base.captions, study.kept)
    rng, false, suspected, made = random.Random(study.part), [], 0, 0
    denied = {name: study.kept.columns[name][1] > 0 for name in CLASSES if name in study.kept.columns}
    has = {name: np.array([name in present for present in study.base.objects]) for name in denied}
    pairs = [(t, v) for t in has for v in has if t != v and (has[t] & has[v] & denied[t]).sum() >= FEWEST]
    print(f"{len(pairs)} pairs can be made hard")
    rng.shuffle(pairs)
    part = pairs[::2] if study.part == "tuning" else pairs[1::2]
    for t, v in tqdm(part[:most], desc="hard but true", mininterval=10):
        rows = has[t] & has[v] & denied[t]
        captions = []
        for i, text in enumerate(study.base.captions):
            if has[v][i] and not rows[i]:  # beside v it is stated nowhere else
                text = " ".join(part for part in split(text) if not study.named([part], t, 1)) or "A photo."
            elif rows[i] and not study.named([text], t, 1):
                text = f"{text} {rng.choice(SENTENCES).format(t)}"
            captions.append(text)
        result = study.result(study.base.ids, captions, study.kept)
        made += 1
        false += [f for f in result.findings if study.named([f.textual_error], t, 1)]
        suspected += any(f.state == "suspected" and study.named([f.textual_error], t, 1) for f in result.suspects)
    share = interval([True] * len(false) + [False] * (made - len(false)))
    print(f"\nhard but true: {len(false)} of {made} settings found {share}, {suspected} suspected")
    for finding in false:
        print("  ", told(finding, study.really_wrong(finding)))


def captioners(study: Study, halves: int) -> None:
    """Captions by real captioners, whole and in random halves."""
    for path in sorted((study.data / "coco" / "lstm_captions").glob("*.jsonl")):
        rows = [(str(row["image_id"]), row["caption"]) for row in map(json.loads, path.open())]
        rng, first = random.Random(7 if study.part == "tuning" else 8), True
        for draw in range(1 + halves):
            chosen = rows if first else sorted(rng.sample(rows, len(rows) // 2))
            result = study.result([name for name, _ in chosen], [text for _, text in chosen])
            if first:
                print(f"\n{path.name}: {result.verdict}")
            for finding in (*result.findings, *(result.suspects if first else ())):
                if finding.state != "candidate":
                    print("  " if first else f"  half {draw}:", told(finding, study.really_wrong(finding)))
            first = False


def people(study: Study, draws: int) -> None:
    """People's own captions, as they are and with errors in random rows: every finding is false."""
    folder = study.data / "coco"
    human = {str(row["image_id"]): row["captions"] for row in map(json.loads, (folder / "captions.jsonl").open())}
    ids = [name for name, texts in human.items() if texts and int(name) in held_out(folder)]
    false = Counter()
    for draw in tqdm(range(draws), desc="people", mininterval=10):
        rng = random.Random(f"{study.part} {draw}")
        captions = [
            " ".join(sentence(text) for text in rng.sample(human[name], min(2, len(human[name])))) for name in ids
        ]
        objects = [study.truth[name] for name in ids]
        t = rng.choice([c for c, n in Counter(o for row in objects for o in row).most_common(60) if n < len(ids) // 2])
        ground = Ground.of(captions, objects, seed=draw, ids=ids, vocabulary=study.vocabulary)
        spoilt = ground.plant_at_random(t, min(60, len(ids) // 5))
        for kind, texts in (("as they are", captions), ("random errors", spoilt.captions)):
            result = study.result(ids, texts)
            false[kind] += bool(result.findings)
            for finding in result.findings:
                print(f"  {kind}, draw {draw} ({t}):", told(finding, study.really_wrong(finding)))
    print(f"\npeople's captions, {draws} draws: a finding in {dict(false)}")


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--part", choices=("tuning", "test"), default="tuning")
    parser.add_argument("--planted", type=int, default=100)
    parser.add_argument("--several", type=int, default=0)
    parser.add_argument("--hard", type=int, default=77)
    parser.add_argument("--halves", type=int, default=20)
    parser.add_argument("--people", type=int, default=40)
    options = parser.parse_args()
    study = Study(options.data, options.part)
    if options.planted:
        planted(study, options.planted)
    if options.several:
        several(study, options.several)
    if options.hard:
        hard_but_true(study, options.hard)
    if options.halves >= 0:
        captioners(study, options.halves)
    if options.people:
        people(study, options.people)


if __name__ == "__main__":
    main()
