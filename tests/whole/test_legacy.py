"""Scripts for other environments: they compile here, and what they write is what we read."""

import csv
import importlib.util
import json
import py_compile
from pathlib import Path

import pytest

from benchmark_builder.bases.radgraph import Entity, read_radgraph

LEGACY = Path(__file__).parents[2] / "scripts" / "legacy"


def script(name):
    spec = importlib.util.spec_from_file_location(name.replace("/", "_"), LEGACY / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", sorted(LEGACY.rglob("*.py")), ids=lambda path: path.stem)
def test_they_compile(path, tmp_path):
    py_compile.compile(str(path), cfile=str(tmp_path / "x.pyc"), doraise=True)
    assert "never run" in path.read_text().split('"""')[1]
    assert "transformers==4.51.3" in (path.parent / "requirements.txt").read_text()


def annotator(texts):
    """As RadGraph answers: by the number of the report, words split anew; it fails on some and leaves out others."""
    if "crash" in texts[0]:
        raise RuntimeError(texts[0])
    words = texts[0].replace(".", " .").split()
    entities = {
        "1": {
            "tokens": words[1],
            "label": "Observation::definitely absent",
            "start_ix": 1,
            "end_ix": 1,
            "relations": [],
        }
    }
    whole = {"text": " ".join(words), "entities": entities, "data_source": None, "data_split": "inference"}
    return {} if "odd" in texts[0] else {"0": whole}


def test_annotations_are_read_as_radgraph_output(tmp_path, capsys):
    annotate = script("radgraph/annotate")
    texts = {
        "s1": "No pneumothorax.",
        "s2": "crash here.",
        "s3": "odd one.",
        "s4": "  ",
        "s5": "No edema. Größe normal.",
    }
    source, out = tmp_path / "impressions.jsonl", tmp_path / "radgraph.jsonl"
    source.write_text("".join(json.dumps({"id": k, "text": v}) + "\n" for k, v in texts.items()))
    assert annotate.write(source, out, annotator) == ["s2", "s3", "s4"]
    said = capsys.readouterr().err
    assert "s2" in said and "crash" not in said
    graphs = read_radgraph(out, {"1", "2", "5"})
    assert set(graphs) == {"1", "5"}
    assert graphs["1"].tokens == ("No", "pneumothorax", ".")
    assert graphs["5"].entities == (Entity(1, 1, "Observation", "absent"),)


def test_annotating_goes_on_where_it_stopped(tmp_path):
    annotate = script("radgraph/annotate")
    source, out = tmp_path / "impressions.jsonl", tmp_path / "radgraph.jsonl"
    source.write_text("".join(json.dumps({"id": f"s{i}", "text": "No edema."}) + "\n" for i in range(4)))
    assert annotate.write(source, out, annotator) == []
    whole = out.read_text()
    for cut in (len(whole) - 5, len(whole.splitlines()[0]) + 20, 3):
        out.write_text(whole[:cut])
        asked = []
        annotate.write(source, out, lambda texts, asked=asked: asked.append(texts) or annotator(texts))
        assert out.read_text() == whole and len(asked) == 4 - whole[:cut].count("\n")


def test_films_are_found_in_folders_and_tables(tmp_path):
    caption = script("maira2/caption")
    for name in ("p10/a.jpg", "b.PNG", "notes.txt"):
        path = tmp_path / "films" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert [name for name, _ in caption.films(tmp_path / "films")] == ["b", "p10/a"]
    with (tmp_path / "films.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("image_id", "image"), ("7", "films/b.PNG")])
    assert list(caption.films(tmp_path / "films.csv")) == [("7", tmp_path / "films" / "b.PNG")]
    out = tmp_path / "captions.jsonl"
    out.write_text('{"image_id": "7", "caption": "No effusion."}\n{"image_id": "8", "cap')
    assert caption.done(out) == {"7"} and out.read_text().count("\n") == 1
