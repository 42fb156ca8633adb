"""A rewritten caption is taken only where it says the rest as before and nothing false; no question is asked twice."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from chat_fakes import FakeServer
from repair_case import Rewriter, audited, captions, pairs, rows, write

import symbal_hf
from benchmark_builder.bases.open_bases import scenes_base
from symbal_hf.core.errors import BadData, ChatFailed
from symbal_hf.core.store import Store
from symbal_hf.data.table import load_data
from symbal_hf.followup.rewrite import check_rewrites, named_by
from symbal_hf.models.chat.protocol import Answer
from symbal_hf.models.composition import Composition
from symbal_hf.models.parts import Parts
from symbal_hf.results.findings import Affected


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    audited(write("jsonl", tmp_path, rows()), tmp_path / "audit")
    return tmp_path


def rewritten(folder: Path, chat: object, out: str = "out", **options: object) -> symbal_hf.Repaired:
    options = {"store": Store(folder / "store.sqlite"), **options}
    return symbal_hf.repair(folder / "audit", policy="rewrite", out=folder / out, chat=chat, **options)


def diff_of(done: symbal_hf.Repaired) -> list[dict]:
    return [json.loads(line) for line in done.diff.read_text("utf-8").splitlines()]


def test_good_answers_are_taken_and_the_finding_is_gone(folder: Path) -> None:
    model = Rewriter()
    done = rewritten(folder, model)
    assert (done.counts.rewritten, done.counts.rewrite_refused, done.counts.unchecked) == (40, 0, 0)
    assert captions(done.table)["r160"] == "There is a toilet. A. It is white."
    assert captions(done.table)["r148"] == "A a a."  # all of it was one sentence
    assert pairs(symbal_hf.audit(done.table)) == set() and len(model.asked) == 4  # equal captions are asked once
    told = json.loads(done.summary.read_text("utf-8"))
    assert told["provenance"]["calls"][0]["model"] == "hf:rewriter" and told["counts"]["rewritten"] == 40
    assert '"A sink' not in told["provenance"]["calls"][0].__repr__()


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda caption, wrong: caption, "still names 'sink'"),
        (lambda caption, wrong: "", "is empty"),
        (lambda caption, wrong: "...", "is empty"),
        (
            lambda caption, wrong: Rewriter.mended(caption, wrong) + " It is." * 30,
            "characters where the old one has",
        ),
        (lambda caption, wrong: "There is more.", "no longer says 'There is a toilet.'"),
        (lambda caption, wrong: Rewriter.mended(caption, wrong).replace(" A. ", " A dog is. "), "names 'dog'"),
        (lambda caption, wrong: "There are Sinks. " + caption, "still names 'sink'"),
        (lambda caption, wrong: "There is a toilet. I cannot help with that. It is white.", "adds 5 words"),
        (lambda caption, wrong: Answer(error="refused by the filter."), "no answer (refused by the filter)"),
    ],
)
def test_any_other_answer_falls_back_to_dropping(folder: Path, make, reason: str) -> None:
    def only_once(caption: str, wrong: list[str]):
        return make(caption, wrong) if caption.startswith("There is a toilet") else Rewriter.mended(caption, wrong)

    done = rewritten(folder, Rewriter(only_once))
    assert (done.counts.rewritten, done.counts.rewrite_refused, done.counts.sentences_dropped) == (30, 10, 10)
    first = diff_of(done)[0]
    assert first["action"] == "sentences dropped" and reason in first["reason"], first
    assert captions(done.table)["r160"] == "There is a toilet. It is white."
    assert pairs(symbal_hf.audit(done.table)) == set()


def test_quotes_around_an_answer_are_none_of_the_caption(folder: Path) -> None:
    done = rewritten(folder, Rewriter(lambda caption, wrong: f'"{Rewriter.mended(caption, wrong)}"\n'))
    assert done.counts.rewritten == 40 and captions(done.table)["r160"].startswith("There is a toilet.")


def test_a_second_run_asks_nothing_and_a_killed_one_goes_on(folder: Path) -> None:
    killed = Rewriter(dies_after=2)
    with pytest.raises(KeyboardInterrupt):
        rewritten(folder, killed)
    assert not (folder / "out").exists() and len(killed.asked) == 2
    rest = Rewriter()
    first = rewritten(folder, rest)
    assert len(rest.asked) == 2 and first.counts.rewritten == 40
    again = Rewriter()
    second = rewritten(folder, again, "again")
    assert again.asked == [] and second.table.read_bytes() == first.table.read_bytes()
    with pytest.raises(KeyboardInterrupt):  # another prompt is another question
        (folder / "prompts").mkdir()
        (folder / "prompts" / "rewrite_caption.jinja").write_text("{{ text }} {{ errors }} {{ facts }}")
        rewritten(folder, Rewriter(dies_after=0), "other", prompts=folder / "prompts")


def test_a_model_that_never_answers_stops_the_repair(folder: Path) -> None:
    with pytest.raises(ChatFailed, match="answered none"):
        rewritten(folder, Rewriter(lambda caption, wrong: Answer(error="out of memory.")))
    assert not (folder / "out").exists()
    with pytest.raises(ValueError, match="asks a chat model"):
        rewritten(folder, None)


def test_a_server_is_asked_by_its_address(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with FakeServer() as server:  # its answers are no captions
        done = rewritten(folder, f"openai:{server.url}#m", concurrency=4)
        assert done.counts.rewrite_refused == 40 and done.counts.sentences_dropped == 30 and done.counts.emptied == 10
        assert len(server.questions) == 4
        rewritten(folder, f"openai:{server.url}#m", "again")
        assert len(server.questions) == 4
    assert "/v1#m" in json.dumps(done.provenance["calls"])


def test_conversations_keep_their_stand_ins_and_other_turns(tmp_path: Path) -> None:
    source = write("llava.json", tmp_path, rows())
    source.write_text(
        source.read_text("utf-8").replace('"There is a toilet.', '"<image_1>\\nThere is a toilet.'), "utf-8"
    )
    audited(source, tmp_path / "audit")
    done = rewritten(tmp_path, Rewriter())
    assert done.counts.rewritten == 40
    assert captions(done.table)["r160"] == "<image_1>\nThere is a toilet. A. It is white."


def test_without_truth_new_sentences_must_fit_as_well_as_the_old(scene_folder, tmp_path: Path) -> None:
    folder, truth = scene_folder
    t, v = truth.textual_error, truth.visual_feature
    audited(folder / "captions.jsonl", tmp_path / "audit")
    honest = Rewriter(lambda caption, wrong: _swapped(caption, wrong, f"A {v} is there."), name="hf:honest")
    good = rewritten(tmp_path, honest, "good", store=None)
    assert good.counts.rewritten > 0.6 * (good.counts.rewritten + good.counts.rewrite_refused)
    root = shlex.split(good.command or "")
    again = symbal_hf.audit(good.table, image_root=root[root.index("--image-root") + 1])
    assert (t, v) not in pairs(again)
    said = (folder / "captions.jsonl").read_text("utf-8")
    false = next(name for name in ("boat", "giraffe", "zebra", "airplane", "train", "kite") if f"a {name}" in said)
    liar = Rewriter(lambda caption, wrong: _swapped(caption, wrong, f"A {false} is there."), name="hf:liar")
    bad = rewritten(tmp_path, liar, "bad", store=None)
    assert bad.counts.rewrite_refused > good.counts.rewrite_refused
    assert any("fit the image worse" in (change["reason"] or "") for change in diff_of(bad))


def _swapped(caption: str, wrong: list[str], new: str) -> str:
    for sentence in wrong:
        caption = caption.replace(sentence, new)
    return caption


def test_where_the_audits_models_were_objects_nobody_checks(tmp_path: Path) -> None:
    given = [{**r, "references": ["A toilet." if r["objects"] == ["toilet"] else "A dog."]} for r in rows()]
    source = tmp_path / "rows.jsonl"
    source.write_text("".join(json.dumps(r) + "\n" for r in given), "utf-8")
    result = symbal_hf.audit(source)
    made = {
        **result.provenance,
        "models": {"composition": {"scorer_1": "text-only:object:mine"}},
        "scorer": "text-only",
    }
    done = symbal_hf.repair(
        replace(result, provenance=made), policy="rewrite", out=tmp_path / "out", chat=Rewriter(),
        store=Store(tmp_path / "s.sqlite"),
    )  # fmt: skip
    assert done.counts.unchecked == done.counts.rewritten == 40 and done.command is None


# ------------------------------------------------------------------------------------------------ what names t


def test_t_is_told_by_the_words_that_the_wrong_sentences_share(folder: Path) -> None:
    first = symbal_hf.load_result(folder / "audit").findings[0]

    def named(t: str, *said: str, vocabulary=None):
        affected = tuple(Affected(str(i), (s,), True) for i, s in enumerate(said))
        return named_by(replace(first, textual_error=t, affected=affected), vocabulary)

    racket = named("tennis racket", "A tennis racket lies there.", "She holds a racket.")
    assert racket.name == "racket" and racket("Two rackets.") and not racket("A tennis ball.")
    sign = named("stop sign", "A stop sign stands there.", "Behind it is a stop sign.")
    assert sign.name == "stop sign" and not sign("A street sign.")
    words = {"sink": ["basin", "wash basin"], "toilet": []}
    assert named("sink", "A basin.", vocabulary=words)("There are wash basins.")
    assert not named("sink", "A basin.", vocabulary=words)("The toilet is sinking.")


def test_an_unknown_policy_or_format_is_told(folder: Path) -> None:
    with pytest.raises(ValueError, match="policy='mend'; it is one of flag, drop-sentence, drop-row, rewrite"):
        symbal_hf.repair(folder / "audit", policy="mend", out=folder / "x")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="output_format='xml'"):
        symbal_hf.repair(folder / "audit", policy="flag", out=folder / "x", output_format="xml")  # type: ignore[arg-type]
    with pytest.raises(BadData, match="no folder"):
        rewritten(folder, Rewriter(), prompts=folder / "nowhere")


@pytest.mark.parametrize("scorer", ["vision-language", "embedding:lite"])
def test_a_compositions_own_scorer_judges_new_sentences(scorer: str, tmp_path: Path) -> None:
    base = scenes_base(tmp_path / "drawn", rows=24, seed=5)
    data = load_data([
        {"id": i, "image": str(image), "caption": "A scene."} for i, image in zip(base.ids, base.images, strict=True)
    ])  # fmt: skip
    chat = f"hf:{Path(__file__).parents[1] / 'assets' / 'scene_mllm'}"
    names = sorted({name for present in base.objects for name in present})
    asked, right = {}, {}
    for row, present in enumerate(base.objects):
        there, absent = sorted(present)[0], [name for name in names if name not in present]
        true, false = f"There is a {there}.", f"There is a {absent[row % len(absent)]}."
        asked[row] = ((true,), (false,)) if row % 2 else ((false,), (true,))
        right[row] = bool(row % 2)
    asked[0] = ((), asked[0][1])  # nothing is new, nothing can be wrong
    right[0] = True
    composition = {"scorer_1": scorer, "scorer_2": scorer, "chat": chat}
    parts = Parts(Composition(**composition), Store(tmp_path / "s.sqlite"), device="cpu")
    said = check_rewrites(asked, data, parts, vocabulary=None)
    assert set(said) == set(asked) and all(said[row] is True or isinstance(said[row], str) for row in said)
    agreed = sum((said[row] is True) == right[row] for row in asked)
    assert agreed >= (22 if scorer == "vision-language" else 15), (agreed, said)
