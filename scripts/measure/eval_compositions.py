"""Run compositions of models on planted scene settings; print Acc@1 and Acc@5 of each (the paper's Tables 1 and 2)."""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import symbal_hf
from benchmark_builder.bases.base import Base
from benchmark_builder.bases.coco_names import natural_vocabulary
from benchmark_builder.bases.open_bases import scenes_base
from benchmark_builder.planting.inject import Plan
from benchmark_builder.planting.pairs import STRATEGIES, pairs_for
from benchmark_builder.planting.plant import Ground, Planted
from benchmark_builder.planting.settings import Setting, candidates
from symbal_hf.core.store import Store
from symbal_hf.data.table import AuditData, Images
from symbal_hf.language.phrases import Vocabulary
from symbal_hf.models.chat.protocol import ChatModel
from symbal_hf.models.composition import Composition
from symbal_hf.models.parts import Parts, load_chat

HEADS = ("t@1", "t@5", "v@1", "v@5", "both@1", "both@5", "found@1")


@dataclass
class Row:
    """One composition and how often each name was right."""

    label: str
    method: str
    parts: dict[str, Any]
    references: bool = False
    scores: list[dict[str, bool]] = field(default_factory=list)

    @property
    def summarized(self) -> bool:
        """Whether a model names clusters, so that it matters how many members it looks at."""
        return {self.parts.get(f"summarizer_{stage}", "phrases") for stage in (1, 2)} != {"phrases"}


def compositions(chat: ChatModel) -> list[Row]:
    """The compositions that are compared; each asks the same chat model."""
    look = {"scorer_1": "vision-language", "scorer_2": "vision-language"}
    read = {"scorer_1": "text-only", "scorer_2": "text-only", "captioner": chat}
    both = {"scorer_1": "vision-language", "scorer_2": "text-only", "captioner": chat}
    rows = [
        Row("vision-language", "association", look),
        Row("vision-language, captioner", "association", look | {"captioner": chat}),
        Row("text-only, captioner", "association", read),
        Row("vision-language", "association", look, references=True),
    ]
    for label, scorers in (("vision-language", look), ("text-only, captioner", read), ("mixed", both)):
        for one, two in (("phrases", "phrases"), ("text-only", "vision-language"), ("text-only", "text-only")):
            if two == "text-only" and "captioner" not in scorers:
                continue
            parts = scorers | {"summarizer_1": one, "summarizer_2": two}
            rows.append(Row(f"{label}; {one} / {two}", "paper", parts))
    rows.append(
        Row(
            "vision-language; text-only / text-only",
            "paper",
            look | {"summarizer_1": "text-only", "summarizer_2": "text-only"},
            references=True,
        )
    )
    return rows


Judge = Callable[[Sequence[str], str], list[bool]]


def by_words(vocabulary: Vocabulary) -> Judge:
    """Names mean the truth when they are one of its synonyms in the scene world."""
    return lambda names, truth: [truth in vocabulary.find(name) for name in names]


def by_chat(parts: Parts, spec: str) -> Judge:
    """Names mean the truth when a chat model says so (prompt same_thing); what it does not answer counts as no."""

    def judge(names: Sequence[str], truth: str) -> list[bool]:
        values = [{"answer": name, "truth": truth} for name in names]
        return [(answer.yes or 0.0) > 0.5 for answer in parts.ask(spec, "same_thing", values, kind="yes")]

    return judge


def score(result: symbal_hf.AuditResult, setting: Setting, judge: Judge) -> dict[str, bool]:
    """Whether the first pair names t and v."""
    pairs = (*result.findings, *result.suspects)
    if not pairs:
        return dict.fromkeys(HEADS, False)
    first = pairs[0]
    t = judge(first.textual_error_candidates[:5], setting.textual_error)
    v = judge(first.visual_feature_candidates[:5], setting.visual_feature)
    at = {"t@1": t[0], "t@5": any(t), "v@1": v[0], "v@5": any(v)}
    at |= {"both@1": t[0] and v[0], "both@5": any(t) and any(v)}
    return at | {"found@1": at["both@1"] and result.verdict == "systematic"}


def planted(base: Base, found: Planted, *, references: bool) -> AuditData:
    """The planted captions as an audit reads them."""
    assert not isinstance(base.images, Images) and base.images is not None
    images = Images([str(path) for path in base.images], range(len(base)), None)
    told = base.references if references else None
    return AuditData(base.ids, found.captions, told, None, images, (), "planted scenes")


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chat", default="hf:tests/assets/scene_mllm", help="the chat model of every part")
    parser.add_argument("--rows", type=int, default=600)
    parser.add_argument("--settings", type=int, default=30)
    parser.add_argument("--members", type=int, default=12, help="of a cluster that a summarizer looks at")
    parser.add_argument("--seed", type=int, default=71, help="scenes and settings")
    parser.add_argument("--store", type=Path, help="keep answers here, so that a second run asks nothing")
    parser.add_argument("--clean-seeds", type=int, default=0, help="captionings with nothing planted, for association")
    parser.add_argument("--judge", choices=("words", "chat"), default="words", help="who says that a name is right")
    parser.add_argument("--only", choices=("association", "paper"))
    args = parser.parse_args()
    base = scenes_base(rows=args.rows, seed=args.seed)
    ground = Ground(base, seed=args.seed)
    settings = [s for s in candidates(ground, pairs_for(base, STRATEGIES, seed=args.seed)) if s.feasible]
    random.Random(args.seed).shuffle(settings)
    settings = settings[: args.settings]
    vocabulary = natural_vocabulary(name for present in base.objects for name in present)
    store = Store(args.store)
    judge = by_words(vocabulary)
    chat = load_chat(args.chat)
    if args.judge == "chat":
        judge = by_chat(Parts(Composition(chat=args.chat), store, objects={args.chat: chat}), args.chat)
    rows = [row for row in compositions(chat) if args.only in (None, row.method)]
    for number, setting in enumerate(settings, 1):
        found = ground.plant(setting.textual_error, setting.visual_feature, setting.strength)
        assert isinstance(found, Planted)
        for row in rows:
            data = planted(base, found, references=row.references)
            result = symbal_hf.audit(
                data,
                method=row.method,
                chat=chat,
                **({"members": args.members} if row.summarized else {}),
                store=store,
                seed=args.seed,
                **row.parts,
            )
            row.scores.append(score(result, setting, judge))
        right = " ".join(str(int(row.scores[-1]["both@1"])) for row in rows)
        print(f"{number}/{len(settings)} {setting.config}: {right}", flush=True)
    for row in rows if args.clean_seeds else ():
        if row.method == "association":
            print_clean(row, args, chat, store)
    if settings:
        print_table(rows)


def print_clean(row: Row, args: argparse.Namespace, chat: ChatModel, store: Store) -> None:
    """How often nothing is found where nothing was planted: the same pictures, other captions of theirs."""
    none = 0
    for seed in range(args.clean_seeds):
        other = scenes_base(rows=args.rows, seed=args.seed, captions=1000 + seed)
        data = planted(other, Planted(other.captions, (), (), Plan(0, 0, 0.0)), references=row.references)
        none += symbal_hf.audit(data, chat=chat, store=store, seed=args.seed, **row.parts).verdict == "none"
    references = "references" if row.references else "no references"
    print(f"nothing planted, {row.label}, {references}: verdict none in {none} of {args.clean_seeds}", flush=True)


def print_table(rows: Sequence[Row]) -> None:
    """The shares of settings as a Markdown table."""
    print(f"\n| method | references | scorers; summarizers | {' | '.join(HEADS)} |")
    print("|---" * (3 + len(HEADS)) + "|")
    for row in rows:
        shares = [sum(hits[head] for hits in row.scores) / len(row.scores) for head in HEADS]
        references = "yes" if row.references else "no"
        print(f"| {row.method} | {references} | {row.label} | " + " | ".join(f"{share:.2f}" for share in shares) + " |")


if __name__ == "__main__":
    main()
