"""The page ranks what may be compared, and shows what strangers wrote letter by letter, or why it is refused."""

from __future__ import annotations

import copy
import importlib.util
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from bench_case import make_bench, right, write_results
from hub import LoopbackHub, Repo

from symbal_hf.bench.leaderboard.submission import build_submission, dumps

pytest.importorskip("jsonschema", reason="checks the form of submissions")
FOLDER = Path(__file__).parents[3] / "hub_cards" / "leaderboard"
sys.path.insert(0, str(FOLDER))

import leaderboard_view as view  # noqa: E402

HTML = "<img src=x onerror=\"document.title='pwned'\"></td></table><script>document.title='pwned'</script>"
MARKDOWN = "**bold** [link](javascript:alert(1)) ${document.title='pwned'} {{7*7}} $x^2$"
UNICODE = "Ünï 系统 🖨️ نظام e\u0301".replace("\ufe0f", "")
EXACT, LENIENT = json.dumps([True, "exact", "1", ""]), json.dumps([False, "lenient", "", ""])
VOID = {"img", "line", "circle"}


def wrong_in(*numbers, name="<b>teapot</b>"):
    """Answers that are wrong in the settings of some numbers, and right elsewhere."""

    def answer(number, setting):
        t, v = right(number, setting)
        return ([name] if number in numbers else t), [*v, name]

    return answer


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    return make_bench(tmp_path_factory.mktemp("bench"))


def submission(bench, folder, name, answer, *, judge="exact", url=None, **more):
    return build_submission(write_results(folder, bench, answer, **more), bench=bench, name=name, judge=judge, url=url)


@pytest.fixture(scope="module")
def source(bench, tmp_path_factory):
    """Three submissions, and three files that are none."""
    top = tmp_path_factory.mktemp("source")
    folder = top / "submissions"
    folder.mkdir()
    free = [n for n, s in enumerate(bench.settings) if s.variant == "reference_free"]
    for name, title, wrong in (("one", HTML, free[:1]), ("two", MARKDOWN, free[:2]), ("three", UNICODE, free)):
        made = submission(bench, top / name, title, wrong_in(*wrong), url="https://example.org/?a=1&b='"[:-1])
        (folder / f"{name}.json").write_bytes(dumps(made))
    (folder / "twice <i>.json").write_text('{"a": 1, "a": 2}')
    raised = copy.deepcopy(made)
    raised["scores"]["variants"]["reference_free"]["acc@1"] = 1
    (folder / "raised.json").write_bytes(dumps(raised))
    shutil.copy(folder / "one.json", folder / "zcopy.json")
    return folder


@pytest.fixture
def board(bench, source):
    board = view.Board(str(source), bench)
    board.refresh()
    return board


class Page(HTMLParser):
    """The tags of a piece of HTML, which must close, and its text."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.links, self.text = [], set(), [], ""
        self.feed(text)
        self.close()
        assert self.open == [], self.open

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.links += [value for name, value in attributes if name == "href"]
        assert not any(name.startswith("on") or name == "src" for name, _ in attributes), attributes
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


OURS = {"div", "table", "thead", "tbody", "tr", "th", "td", "b", "bdi", "a", "small", "p", "dl", "dt", "dd", "ul", "li",
        "h3", "i", "span", "svg", "text", "line", "circle"}  # fmt: skip


def test_entries_are_ranked_by_what_was_computed_and_overlapping_ones_share_a_rank(board):
    places, partial = board.places("reference_free", view.ALL, EXACT)
    assert [(p.entry.name, p.score["acc@1"], p.rank, p.tied) for p in places] == [
        (HTML, 7 / 8, 1, False), (MARKDOWN, 6 / 8, 1, True), (UNICODE, 0, 3, False),
    ] and partial == []  # fmt: skip
    for above, below in pairwise(places):
        overlap = below.score["acc@1_interval"][1] >= above.score["acc@1_interval"][0]
        assert below.tied == overlap
    based, _ = board.places("reference_based", "scenes", EXACT)
    assert {(p.rank, p.score["acc@1"]) for p in based} == {(1, 1.0)} and len(based) == 3
    assert board.places("reference_free", "nowhere", EXACT) == ([], [])
    assert board.domains() == ["all", "scenes"] and board.judges() == [EXACT]


def test_different_judges_are_never_in_one_table(bench, source, tmp_path):
    def lenient(pairs):
        return [True for _ in pairs]

    for path in source.glob("*.json"):
        shutil.copy(path, tmp_path)
    made = submission(bench, tmp_path / "run", "generous", wrong_in(*range(99)), judge=lenient)
    (tmp_path / "lenient.json").write_bytes(dumps(made))
    (tmp_path / "run/run.json").unlink()
    board = view.Board(str(tmp_path), bench)
    board.refresh()
    assert board.judges() == [EXACT, LENIENT]
    (place,), _ = board.places("reference_free", view.ALL, LENIENT)
    assert place.entry.name == "generous" and place.score["acc@1"] == 1 and not place.entry.report.verified
    assert "as stated" in view.table([place]) and "unverified" in view.detail(
        place.entry, bench, "reference_free", "all"
    )
    assert "generous" not in view.table(board.places("reference_free", view.ALL, EXACT)[0])
    # With a judge of its own the board compares them all.
    again = view.Board(str(tmp_path), bench, judge="exact")
    again.refresh()
    places, _ = again.places("reference_free", view.ALL, EXACT)
    assert again.judges() == [EXACT] and len(places) == 4 and "generous" in {p.entry.name for p in places[2:]}


def test_a_judge_that_calls_itself_like_another_gets_a_table_of_its_own(bench, source, tmp_path):
    made = json.loads((source / "three.json").read_bytes())
    for row in made["predictions"]:
        row["judged"] = {part: ["same"] * len(states) for part, states in row["judged"].items()}
    for labels in made["scores"].values():
        for one in labels.values():
            one.update({key: 1 for key in one if "acc@" in key})
    made["judge"] = {"name": "exact 1", "revision": "", "prompt_hash": ""}
    shutil.copy(source / "one.json", tmp_path)
    for number in range(3):
        made["seeds"]["method"] = number
        (tmp_path / f"liar{number}.json").write_bytes(dumps(made))
    board = view.Board(str(tmp_path), bench)
    board.refresh()
    assert len(board.entries) == 4 and board.judges()[0] == EXACT
    assert [p.entry.name for p in board.places("reference_free", view.ALL, EXACT)[0]] == [HTML]
    assert list(map(view.judge_label, board.judges())) == ["exact 1", "exact 1 (as stated, not checked)"]


def test_an_entry_that_covers_one_variant_is_in_that_table_only(bench, tmp_path):
    free = [s for s in bench.settings if s.variant == "reference_free"]
    made = submission(bench, tmp_path / "run", "free", wrong_in(), settings=free)
    (tmp_path / "subs").mkdir()
    (tmp_path / "subs/free.json").write_bytes(dumps(made))
    board = view.Board(str(tmp_path / "subs"), bench)
    board.refresh()
    assert len(board.places("reference_free", view.ALL, EXACT)[0]) == 1
    assert board.places("reference_based", view.ALL, EXACT) == ([], [])
    assert "No entry covers this" in view.table([])


def test_an_entry_of_some_domains_is_ranked_in_these_and_named_among_all(board):
    entry = board.entries[0]
    part = copy.deepcopy(dict(entry.submission))
    part["tasks"] = []
    from dataclasses import replace

    board.entries = [replace(entry, report=replace(entry.report, submission=part))]
    places, partial = board.places("reference_free", view.ALL, EXACT)
    assert places == [] and [one.name for one in partial] == [entry.name]
    assert "they cover only some domains" in Page(view.table(places, partial)).text
    assert len(board.places("reference_free", "scenes", EXACT)[0]) == 1


def test_refused_files_are_listed_with_the_reason_and_copies_count_once(board):
    reasons = {one.label: one.reasons for one in board.refused}
    assert set(reasons) == {"twice <i>.json", "raised.json", "zcopy.json"} and len(board.entries) == 3
    assert "the key 'a' is there twice" in reasons["twice <i>.json"][0]
    assert any("acc@1'] is 1, and its judge gives its predictions 0" in one for one in reasons["raised.json"])
    assert reasons["zcopy.json"] == ("it is the same file as one.json.",)
    page = Page(view.refused_list(board.refused))
    assert page.tags <= OURS and "twice <i>.json" in page.text and "None." in view.refused_list([])


def test_what_strangers_wrote_is_text_everywhere(board, bench):
    places, _ = board.places("reference_free", view.ALL, EXACT)
    rows = [(p.entry.name, p.score) for p in places]
    pieces = [view.table(places), view.chart(rows, HTML)]
    pieces += [view.detail(p.entry, bench, "reference_free", view.ALL) for p in places]
    for piece in pieces:
        assert Page(piece).tags <= OURS
        assert not re.search(r"\$\{|\{\{|`", piece)  # nor is it a template
    table = Page(pieces[0])
    assert all(name in table.text for name in (HTML, MARKDOWN, UNICODE))
    assert all(link.startswith("https://example.org/") for link in table.links) and len(table.links) == 3
    assert "✗ <b>teapot</b>" in Page(pieces[2]).text and "✓ " in pieces[2]


def test_the_detail_shows_each_setting_with_truth_answers_and_verdicts(board, bench):
    entry = next(e for e in board.entries if e.name == HTML)
    detail = Page(view.detail(entry, bench, "reference_free", "scenes"))
    for setting in bench.settings:
        assert (setting.name in detail.text) == (setting.variant == "reference_free")
    assert "Strength 0.3" in detail.text and "Sampling adversarial" in detail.text
    assert "It has no answers" in view.detail(entry, bench, "reference_free", "nowhere")


def test_what_is_long_is_cut_and_a_drawing_keeps_its_size():
    assert len(Page(view.text("x" * 10_000)).text) == 200
    score = {"acc@1": 0.5, "acc@1_interval": [0.2, 0.9]}
    drawing = view.chart([("y" * 10_000, score)] * 3, "t")
    assert len(drawing) < 4000 and "viewBox='0 0 760 138'" in drawing and view.chart([], "t") == ""


def test_each_content_is_checked_once_and_new_files_appear_after_a_while(bench, source, tmp_path, monkeypatch):
    shutil.copy(source / "one.json", tmp_path)
    checked = []
    validate = view.validate
    monkeypatch.setattr(view, "validate", lambda *a, **o: checked.append(1) or validate(*a, **o))
    board = view.Board(str(tmp_path), bench, seconds=60)
    board.refresh()
    shutil.copy(source / "two.json", tmp_path)
    board.refresh()
    assert len(board.entries) == len(checked) == 1
    board.seconds = -1
    board.refresh()
    assert len(board.entries) == len(checked) == 2


READ = """
import json
sys.path.insert(0, sys.argv[1])
from leaderboard_view import gather
print(json.dumps([(label, got if isinstance(got, str) else len(got)) for label, got in gather(sys.argv[2])]))
"""


def test_submissions_are_read_from_model_repos_and_dataset_repos(source, tmp_path):
    from hub import File

    data = (source / "one.json").read_bytes()
    with LoopbackHub() as hub:
        model = hub.repos["model", "lab/system"] = Repo("model", "lab/system")
        model.commit("main", "results", {"symbalbench/a.json": File(data, False), "config.json": File(b"{}", False)})
        results = hub.repos["dataset", "lab/results"] = Repo("dataset", "lab/results")
        large = File(b" " * 20_000_001, True)
        results.commit("main", "results", {"b.json": File(data, False), "c.json": large, "d.txt": File(b"", False)})
        wanted = "lab/system, datasets/lab/results, lab/none"
        read = json.loads(hub.run(READ, tmp_path / "home", FOLDER, wanted))
    assert read[:2] == [["lab/system/symbalbench/a.json", len(data)], ["datasets/lab/results/b.json", len(data)]]
    assert read[2][0] == "datasets/lab/results/c.json" and "20,000,001 bytes" in read[2][1]
    assert read[3][0] == "lab/none" and read[3][1].startswith("the Hub does not give it: ") and len(read) == 4


def test_the_space_has_what_the_hub_asks_for():
    card = (FOLDER / "README.md").read_text("utf-8")
    about = yaml.safe_load(card.split("---\n")[1])
    assert about["sdk"] == "gradio" and (FOLDER / about["app_file"]).is_file() and len(about["short_description"]) <= 60
    assert re.fullmatch(r"symbal-hf\[lite,leaderboard\]>=\d\.\d\n", (FOLDER / "requirements.txt").read_text())
    app = (FOLDER / "app.py").read_text("utf-8")
    assert set(re.findall(r"SYMBAL_[A-Z]+", app)) == set(re.findall(r"`(SYMBAL_[A-Z]+)`", card))


@pytest.fixture
def address(bench, source, tmp_path):
    """The running Space."""
    if importlib.util.find_spec("gradio") is None:
        pytest.skip("gradio is not installed; pip install 'symbal-hf[leaderboard]' in an environment of its own")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = {
        **os.environ, "SYMBAL_BENCHMARK": str(bench.folder), "SYMBAL_SUBMISSIONS": str(source), "HF_HUB_OFFLINE": "1",
        "GRADIO_SERVER_NAME": "127.0.0.1", "GRADIO_SERVER_PORT": str(port), "GRADIO_ANALYTICS_ENABLED": "False",
        "NO_PROXY": "127.0.0.1", "PYTHONPATH": str(FOLDER.parents[1]),
    }  # fmt: skip
    log = (tmp_path / "log").open("w+")
    app = subprocess.Popen([sys.executable, "app.py"], cwd=FOLDER, env=env, stdout=log, stderr=log)
    end = time.monotonic() + 60
    while True:
        assert app.poll() is None and time.monotonic() < end, (tmp_path / "log").read_text()
        with socket.socket() as door:
            if door.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.2)
    yield f"http://127.0.0.1:{port}/"
    app.terminate()
    app.wait(20)
    log.close()


def test_the_running_space_shows_ranks_filters_and_hostile_names_as_text(address, browser, tmp_path):
    browser.call("Page.navigate", url=address)
    browser.wait("!!document.querySelector('#ranks tbody tr')")
    rows = "[...document.querySelectorAll('#ranks tbody tr')].map(r => [...r.children].map(c => c.innerText.trim()))"
    shown = browser.run(rows)
    assert [row[:3] for row in shown] == [
        ["1", HTML, "0.875"], ["1 tied", MARKDOWN, "0.750"], ["3", UNICODE, "0.000"],
    ]  # fmt: skip
    assert browser.run("document.querySelectorAll('#drawing circle').length") == 3
    assert browser.run("document.querySelector('#judge input').value") == "exact 1"
    answers = "document.querySelector('#detail').innerText"
    browser.wait(f"{answers}.includes('teapot')")
    assert "✗ <b>teapot</b>" in browser.run(answers)
    # Another entry, then the other variant.
    browser.run("document.querySelector('#entry input').dispatchEvent(new Event('focus'))")
    browser.wait("document.querySelectorAll('#entry [role=option]').length == 3")
    third, press = (
        "document.querySelectorAll('#entry [role=option]')[2]",
        "new MouseEvent('mousedown', {bubbles: true})",
    )
    browser.run(f"{third}.dispatchEvent({press})")
    browser.wait(f"document.querySelector('#detail h3').innerText == {json.dumps(UNICODE)}")
    browser.run("document.querySelector('#refused button').click()")
    browser.wait("document.querySelector('#refused').innerText.includes('is there twice in one object')")
    browser.picture(Path(os.environ.get("SYMBAL_PICTURES", tmp_path)) / "leaderboard.png")
    browser.run("document.querySelectorAll('#variant input')[1].click()")
    browser.wait(f"{rows}.every(row => row[2] == '1.000')")
    assert [row[0] for row in browser.run(rows)] == ["1", "1 tied", "1 tied"]
    assert "reference_free" not in browser.run(answers)
    # Nothing that a name holds was run or became a part of the page.
    assert browser.run("document.title") == "SymbalBench leaderboard"
    assert browser.run("document.querySelectorAll('.gradio-container table img, #ranks script, bdi > *').length") == 0
    links = browser.run("[...document.querySelectorAll('#ranks a')].map(a => a.href)")
    assert links and all(link.startswith("https://example.org/") for link in links)
