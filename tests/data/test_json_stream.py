"""A JSON file that is read piece by piece gives what it would give as a whole, or says that it is none."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import symbal_hf.data.formats.json_files as json_files
from symbal_hf.core.errors import BadData
from symbal_hf.data.opening import open_table
from symbal_hf.data.table import load_data

LIGHT = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(JSON, max_size=6) | st.dictionaries(st.text(max_size=5), JSON, max_size=5), st.integers(1, 9),
       st.sampled_from([None, 1]), st.booleans())  # fmt: skip
@LIGHT
def test_a_stream_gives_what_the_whole_file_gives(tmp_path, monkeypatch, value, chunk, indent, escaped):
    monkeypatch.setattr(json_files, "CHUNK", chunk)
    path = tmp_path / "a.json"
    path.write_text(json.dumps(value, indent=indent, ensure_ascii=escaped), "utf-8", errors="surrogatepass")
    found = list(json_files.json_parts(path))
    if isinstance(value, list):
        assert found == [(None, item) for item in value]
    else:
        flat = [(k, i) for k, v in value.items() for i in (v if isinstance(v, list) else [v])]
        assert found == flat


@given(st.lists(st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2), min_size=1), st.data())
@LIGHT
def test_a_file_that_is_cut_off_is_never_read_as_whole(tmp_path, value, data):
    text = json.dumps(value)
    path = tmp_path / "a.json"
    path.write_text(text[: data.draw(st.integers(0, len(text) - 1))], "utf-8")
    with pytest.raises(BadData, match="no valid JSON"):
        list(json_files.json_parts(path))


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b'[{"caption": "A dog."},\n{"caption": }]', "line 2: no valid JSON"),
        (b'[{"caption": "A dog."}] x', "Extra data"),
        (b'[{"caption": "A dog."} {"caption": "A cat."}]', "Expecting ',' or ']'"),
        (b'[{"caption": "caf\xe9"}]', "not UTF-8"),
        (b'["a", "b"]', "must hold a JSON list of objects"),
        (b'{"caption": "A dog."}', "must hold a JSON list of objects"),
        (b'{"images": [], "annotations": []}', "has no rows"),
        (b'"text"', "a single JSON value"),
        (b"", "no valid JSON"),
        (b"[]", "has no rows"),
    ],
)
def test_a_json_file_that_holds_no_rows_says_why(tmp_path, content, complaint):
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(BadData, match=complaint.replace("[", r"\[").replace("]", r"\]")):
        load_data(tmp_path / "a.json")


def test_columns_may_come_late_and_a_limit_counts_from_the_first_row(tmp_path):
    rows = [{"caption": f"Scene {n}.", **({"late": 1} if n == 90 else {})} for n in range(99)]
    path = tmp_path / "a.json"
    path.write_text(json.dumps(rows))
    table = open_table(path)
    assert len(list(table)) == 99 and table.columns == ["caption", "late"] and table.name == "a.json"
    assert load_data(path, limit=3).captions == ("Scene 0.", "Scene 1.", "Scene 2.")
