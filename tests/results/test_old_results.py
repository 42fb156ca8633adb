"""What an audit wrote is read again as it was, by this version and by later ones; a broken file says where."""

import csv
import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from symbal_hf.core.errors import BadData
from symbal_hf.results.comparison import Comparison, Difference, Side
from symbal_hf.results.fact_map import FactMap, MapCluster, MapPoint
from symbal_hf.results.findings import AuditResult, load_result
from symbal_hf.results.json import from_dict
from symbal_hf.results.repaired import Counts, Repaired
from symbal_hf.results.validation import Box, HumanAgreement, Validated, Validation, load_validation

OLD = sorted((Path(__file__).parents[1] / "assets" / "version_0_1").glob("results_*"))


@pytest.mark.parametrize("folder", OLD, ids=lambda folder: folder.name)
def test_a_result_of_version_0_1_is_read_written_and_read_again_equally(folder: Path, tmp_path: Path) -> None:
    result = load_result(folder)
    result.write(tmp_path)
    assert load_result(tmp_path) == result
    old = json.loads((folder / "findings.json").read_text("utf-8"))
    new = json.loads((tmp_path / "findings.json").read_text("utf-8"))
    for suspect in new["suspects"]:
        assert suspect.pop("state") == "candidate"  # version 0.1 knew no states
    assert part_of(old, new) == old
    assert new.keys() - old.keys() <= {"asked", "budget", "fact_map"}  # which came after the first results
    table, before = (list(csv.DictReader((at / "findings.csv").open())) for at in (tmp_path, folder))
    assert part_of(before, table) == before


def part_of(old: Any, new: Any) -> Any:
    """What of `new` the other has, too."""
    if isinstance(old, dict):
        return {key: part_of(value, new[key]) for key, value in old.items() if key in new}
    if isinstance(old, list) and len(old) == len(new):
        return [part_of(*pair) for pair in zip(old, new, strict=True)]
    return new


def test_what_was_read_is_made_of_tuples_and_classes_and_not_of_json() -> None:
    result = max(map(load_result, OLD), key=lambda result: len(result.findings))
    finding = result.findings[0]
    assert isinstance(result.findings, tuple) and isinstance(finding.textual_error_candidates, tuple)
    assert finding.affected[0].sentences and isinstance(finding.affected[0].sentences, tuple)
    assert hash(finding)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("verdict",), "perhaps", "findings.json: verdict is 'perhaps'; it must be one of 'systematic', 'none'."),
        (("findings", 0, "p_value"), "small", "findings.json: findings[0].p_value is 'small'; it must be float."),
        (("findings", 0, "rows_with_feature"), True, "findings[0].rows_with_feature is True; it must be int."),
        (("findings", 0, "affected", 0, "sentences"), "A cat.", "affected[0].sentences is 'A cat.'; it must be tuple."),
        (("findings", 0, "examples"), [3], "examples[0] is 3; it must be an object with the attributes of Example."),
        (("counts",), {"rows": None}, "findings.json: counts['rows'] is None; it must be int."),
        (("skipped",), None, "findings.json: skipped is None; it must be tuple."),
    ],
)
def test_a_broken_file_is_one_sentence_that_names_file_and_field(tmp_path: Path, path, value, said: str) -> None:
    folder = next(folder for folder in OLD if load_result(folder).findings)
    data = json.loads((folder / "findings.json").read_text("utf-8"))
    inner = data
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    (tmp_path / "findings.json").write_text(json.dumps(data), "utf-8")
    with pytest.raises(BadData) as error:
        load_result(tmp_path)
    assert str(tmp_path) in str(error.value) and said in str(error.value)


def test_a_lacking_field_and_a_cut_file_are_named_too(tmp_path: Path) -> None:
    text = (OLD[0] / "findings.json").read_text("utf-8")
    data = json.loads(text)
    del data["counts"]
    (tmp_path / "findings.json").write_text(json.dumps(data), "utf-8")
    with pytest.raises(BadData, match=r"findings\.json: counts is lacking"):
        load_result(tmp_path)
    (tmp_path / "findings.json").write_text(text[: len(text) // 2], "utf-8")
    with pytest.raises(BadData, match=r"findings\.json is no JSON file"):
        load_result(tmp_path)


def test_what_a_later_version_adds_is_passed_over() -> None:
    data = load_result(OLD[0]).to_dict()
    assert from_dict(AuditResult, {**data, "mood": "good"}) == from_dict(AuditResult, data)


SIDE = Side("out", "a.csv", "objects", "none", 0, 7, 1)
DIFFERENCE = Difference(3, 10, 1, 10, 1, -0.2, -0.5, 0.1, 0.25)


@pytest.mark.parametrize(
    "value",
    [
        FactMap((MapPoint(0.5, 0, "A cat.", "7", 0), MapPoint(0, 1, "A dog.", "8", 1, 0)),
                (MapCluster("cat", 1, 0, "A cat."),), None, 2, 1, "lite", "PCA", 0),
        Validation("owlv2", "objects", True, (
            Validated("sink", "toilet", 3, 10, 1, 20, 2, 6.0, 0.7, 1e9, 0.09, HumanAgreement(9, 8, None, None, None),
                      {"7": (Box("sink", 0.5, 0.0, 0.0, 1.0, 1.0),)}),
        ), {"threshold": 0.1}),
        Comparison(SIDE, SIDE, (), DIFFERENCE, True, 7, None, "lite", 0.05, ("a note",), {"judge": "lite"}),
        Repaired("flag", Counts(rows=3, flagged=1, untouched=2), Path("out"), Path("out/a.csv"), Path("out/diff.jsonl"),
                 Path("out/repair.json"), None, ("a note",), {"seed": 0}),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_every_kind_of_result_is_read_as_it_was_told(value) -> None:
    as_told = {f.name: getattr(value, f.name) for f in fields(value)}
    data = value.to_dict() if hasattr(value, "to_dict") else json.loads(json.dumps(_plain(as_told)))
    assert from_dict(type(value), json.loads(json.dumps(data))) == value


def _plain(value):
    """JSON's own kinds, as each result writes itself."""
    from dataclasses import asdict, is_dataclass

    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return list(map(_plain, value))
    return asdict(value) if is_dataclass(value) else str(value) if isinstance(value, Path) else value


def test_no_validation_is_none_and_a_broken_one_is_named(tmp_path: Path) -> None:
    assert load_validation(tmp_path) is None
    (tmp_path / "validation.json").write_text('{"detector": "objects"}', "utf-8")
    with pytest.raises(BadData, match=r"validation\.json: scorer is lacking"):
        load_validation(tmp_path)
