"""What a submission must keep: its form, the benchmark that it answers, and what follows from its own content."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from symbal_hf.bench.acc_at_k import NAMES
from symbal_hf.bench.leaderboard.strict_json import child, shown
from symbal_hf.bench.leaderboard.submission import covered, judge_counts, public, schema, task_of
from symbal_hf.bench.settings import Bench
from symbal_hf.core.errors import MissingModel
from symbal_hf.matching.protocol import State

Pairs = dict[tuple[str, str], "State"]


def named(judge: Mapping[str, str]) -> str:
    """A judge in a message."""
    return f"{shown(judge['name'])} ({judge['revision'] or 'no revision'})"


def against_schema(found: Any) -> Iterator[str]:
    """Where its form is not that of `submission.schema.json`; raises `MissingModel`: jsonschema is not installed."""
    try:
        from jsonschema import Draft202012Validator
    except ImportError as missing:
        raise MissingModel("jsonschema is not installed; run `pip install 'symbal-hf[leaderboard]'`.") from missing

    last = ""
    for error in Draft202012Validator(schema()).iter_errors(found):
        path = "$"
        for key in error.absolute_path:
            path = child(path, key)
        sentence = f"{path} {_problem(error)}."
        if sentence != last:  # each key that is missing is an error of its own
            yield sentence
        last = sentence


def _problem(error: Any) -> str:
    """What is wrong with a value, by the rule that it breaks; the value itself may be huge and is shown in part."""
    rule, value, limit = error.validator, error.instance, error.validator_value
    if rule == "required":
        return f"lacks {', '.join(shown(key) for key in limit if key not in value)}"
    if rule == "additionalProperties":
        extra = [key for key in value if key not in error.schema.get("properties", {})]
        return f"has {shown(extra[0])}, which a submission has no place for; take it out"
    if rule in ("maxLength", "maxItems", "maxProperties"):
        return f"has a length of {len(value)}; at most {limit} are taken"
    if rule in ("minLength", "minItems"):
        return f"has a length of {len(value)}; at least {limit} are needed"
    if rule in ("const", "enum"):
        wanted = limit if rule == "enum" else [limit]
        return f"is {shown(value)}; give {' or '.join(shown(one) for one in wanted)}"
    if rule in ("minimum", "maximum"):
        return f"is {shown(value)}; give a number of {'at least' if rule == 'minimum' else 'at most'} {limit}"
    if rule == "pattern":
        return f"is {shown(value)}, which does not look like {limit}"
    if rule == "anyOf":
        return f"is {shown(value)}, which is not what is taken there; see submission.schema.json"
    return f"is {shown(value)}; give {limit if isinstance(limit, str) else ' or '.join(limit)}"


def against_bench(found: Mapping[str, Any], bench: Bench) -> Iterator[str]:
    """What can be told without reading names: the revision, and which settings there are."""
    if (revision := found["benchmark"]["revision"]) != bench.revision:
        yield (
            f"$.benchmark.revision is {revision}, and this benchmark is {bench.revision}; run the system on this one, "
            "for scores on different revisions cannot be compared."
        )
        return
    names = [row["setting"] for row in found["predictions"]]
    tasks, problems = covered(bench, names)
    yield from problems
    variants = sorted({s.variant for s in bench.settings if task_of(s) in tasks})
    for where, holder in (("$", found), ("$.scores", found["scores"])):
        for key, true in (("tasks", tasks), ("variants", variants)):
            if sorted(holder[key]) != true:
                stated = ", ".join(shown(name) for name in sorted(holder[key])[:5]) or "nothing"
                yield f"{where}.{key} has {stated}, and its predictions are of {', '.join(true)}; state those."


def within(found: Mapping[str, Any], bench: Bench) -> Iterator[str]:
    """Where a submission does not agree with itself, or says what it should not."""
    for place, row in enumerate(found["predictions"]):
        path = f"$.predictions[{place}]"
        for part in NAMES:
            names, verdicts = len(row[part]), len(row["judged"][part])
            if names != verdicts:
                yield f"{path}.judged.{part} has {verdicts} verdicts on {names} names; give one each."
            if row["error"] and names:
                yield f"{path} has names and an error; a setting that gave no result has none."
    said, conflicts = stated_verdicts(found, bench)
    yield from conflicts
    errors = sum(row["error"] for row in found["predictions"])
    for key, true in {"settings": len(found["predictions"]), "errors": errors, **judge_counts(said)}.items():
        if (stated := found["counts"][key]) != true:
            yield f"$.counts.{key} is {stated}, and its predictions have {true}; state that."
    texts = {f"$.system.options.{key}": value for key, value in found["system"]["options"].items()}
    for path, value in {**texts, "$.judge.name": found["judge"]["name"]}.items():
        if isinstance(value, str) and public(value) != value:
            yield f"{path} has a password, or a folder of one machine; take it out and change the password."


def stated_verdicts(found: Mapping[str, Any], bench: Bench) -> tuple[Pairs, list[str]]:
    """The verdict on each (answer, truth) that a file states, and a sentence for each that cannot be."""
    said: Pairs = {}
    problems = []
    for place, row in enumerate(found["predictions"]):
        for part in NAMES:
            truth = bench.by_name[row["setting"]].row[part].strip()
            for rank, (name, state) in enumerate(zip(row[part], row["judged"][part], strict=False)):
                path = f"$.predictions[{place}].judged.{part}[{rank}]"
                if not name.strip():
                    if state != "different":
                        problems.append(f"{path} is {state!r} of a blank name; it names nothing, so state 'different'.")
                elif said.setdefault((name.strip(), truth), state) != state:
                    problems.append(f"{path} is {state!r}, and of the same name and truth before it said otherwise.")
    return said, problems


class StatedJudge:
    """A judge that says what a file states."""

    def __init__(self, judge: Mapping[str, str], said: Pairs) -> None:
        self.name, self.revision, self.prompt_hash = judge["name"], judge["revision"], judge["prompt_hash"]
        self.said = said

    def judge(self, pairs: Sequence[tuple[str, str]]) -> list[State]:
        """What it states of each (answer, truth), in order."""
        return [self.said[pair] for pair in pairs]


def verdicts_differ(stated: Pairs, said: Pairs, judge: Mapping[str, str]) -> Iterator[str]:
    """Where a file states another verdict than the judge that it names."""
    for pair, state in said.items():
        if stated[pair] != state:
            yield (
                f"{named(judge)} says {state!r} of {shown(pair[0])} where the truth is {shown(pair[1])}, and the file "
                f"states {stated[pair]!r}; build the submission anew."
            )


def scores_differ(stated: Mapping[str, Any], true: Mapping[str, Any], *, verified: bool) -> Iterator[str]:
    """Where a file states other scores than follow."""
    by = "its judge gives its predictions" if verified else "its predictions and verdicts give"
    for kind, labels in true.items():
        for label, numbers in labels.items():
            for key, value in numbers.items():
                if abs(stated[kind][label][key] - value) > 1e-9:
                    path = child(child(f"$.scores.{kind}", label), key)
                    yield f"{path} is {stated[kind][label][key]:g}, and {by} {value:g}; state that."
