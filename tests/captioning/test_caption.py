"""`symbal caption`: what is written is what the model said of that image, and an audit reads it as it is."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from chat_fakes import FakeServer, essay, picture
from PIL import Image
from serving import served
from typer.testing import CliRunner

import symbal_hf
from benchmark_builder.bases.coco_names import natural_vocabulary
from benchmark_builder.scenes.draw import OBJECT_NAMES, make_scene
from symbal_hf.cli.app import app
from symbal_hf.core.errors import BadData, ChatFailed
from symbal_hf.core.store import Store
from symbal_hf.data.origin import about
from symbal_hf.data.pixels import decode
from symbal_hf.models.captioner import REFUSAL
from symbal_hf.models.chat.prompting import Prompts
from symbal_hf.models.chat.server import ServerModel

MODEL = Path(__file__).parents[1] / "assets" / "scene_mllm"
KNOWN = Prompts().render("caption_of_image")  # the only wording that the miniature model has learnt
PROMPT = Prompts().render("describe_image")


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store.sqlite")


@pytest.fixture
def server():
    with FakeServer() as fake:
        yield fake


def chat(server, **options):
    return ServerModel("m", base_url=server.url, **({"retries": 0} | options))


def photos(folder, n=6, form="png"):
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(n):
        (folder / f"{i}.{form}").write_bytes(picture("PNG", i))
    return folder


def lines(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


# ------------------------------------------------------------------------------- a model that really looks


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("work") / "photos"
    (folder / "more").mkdir(parents=True)
    names = {}
    for i in range(24):
        scene, drawn = make_scene(i, seed=4711, size=256)
        row_id = f"more/{i:03d}" if i % 3 == 0 else f"{i:03d}"
        drawn.save(folder / f"{row_id}.png")
        names[row_id] = {item.name for item in scene.objects}
    return folder, names


@pytest.fixture(scope="module")
def spoken(scenes):
    folder, _ = scenes
    return symbal_hf.caption(
        folder, model=f"hf:{MODEL}", out=folder.parent / "captions.jsonl", prompt=KNOWN, max_tokens=64,
        store=Store(folder.parent / "store.sqlite"),
    )  # fmt: skip


def test_captions_name_what_the_scenes_show_in_the_order_of_the_files(scenes, spoken):
    folder, names = scenes
    rows = lines(spoken.path)
    assert [row["id"] for row in rows] == sorted(names, key=lambda row_id: folder / f"{row_id}.png")
    assert [set(row) for row in rows] == [{"id", "image", "caption"}] * 24
    assert all((spoken.path.parent / row["image"]).is_file() for row in rows)
    told = {row["id"]: natural_vocabulary(OBJECT_NAMES).find(row["caption"]) for row in rows}
    named = [name in told[row_id] for row_id, shown in names.items() for name in shown]
    assert sum(named) / len(named) > 0.85
    assert (spoken.rows, spoken.captioned, spoken.failed, spoken.skipped) == (24, 24, 0, ())


def test_an_audit_reads_the_captions_with_no_other_option(scenes, spoken, tmp_path):
    result = symbal_hf.audit(spoken.path)
    assert result.counts["rows"] == 24 and result.provenance["scorer"] == "embedding"
    done = CliRunner().invoke(app, ["audit", str(spoken.path), "--out", str(tmp_path / "audit")])
    assert done.exit_code == 0 and (tmp_path / "audit" / "report.html").is_file()


def test_a_second_run_asks_nothing_and_the_file_tells_how_it_was_made(scenes, spoken, monkeypatch):
    folder, _ = scenes
    before = spoken.path.read_bytes()
    monkeypatch.setattr("symbal_hf.models.chat.local.LocalModel.generate", None)
    again = symbal_hf.caption(
        folder, model=f"hf:{MODEL}", out=spoken.path, prompt=KNOWN, max_tokens=64,
        store=Store(folder.parent / "store.sqlite"),
    )  # fmt: skip
    assert spoken.path.read_bytes() == before and (again.cached, again.provenance["asked"]) == (24, 0)
    told = json.loads(about(spoken.path).read_text())
    assert told["model"] == f"hf:{MODEL}" and told["revision"] and told["prompt"] == KNOWN
    assert (told["max_tokens"], told["temperature"], told["seed"]) == (64, 0.0, 0)
    assert told["versions"].keys() == {"python", "symbal-hf", "transformers", "torch"}


def test_behind_a_server_it_says_the_same(scenes, spoken, tmp_path, store):
    pytest.importorskip("uvicorn", reason="the server needs fastapi and uvicorn")
    folder, _ = scenes
    with served(MODEL, tmp_path / "serve.log") as url:
        model = ServerModel(str(MODEL), base_url=url, concurrency=4)
        there = symbal_hf.caption(
            folder, model=model, out=tmp_path / "c.jsonl", prompt=KNOWN, max_tokens=64, store=store
        )
    assert [(r["id"], r["caption"]) for r in lines(there.path)] == [
        (r["id"], r["caption"]) for r in lines(spoken.path)
    ]  # and that it is gone now does not matter
    same = symbal_hf.caption(folder, model=model, out=there.path, prompt=KNOWN, max_tokens=64, store=store)
    assert (same.captioned, same.provenance["asked"]) == (24, 0)


# ----------------------------------------------------------------------------------- what goes wrong on the way


def test_no_caption_is_a_third_state_with_its_reason(tmp_path, store):
    folder = photos(tmp_path / "photos", 8)
    whole = picture("PNG", 7)
    (folder / "7.png").write_bytes(whole[: len(whole) // 2])
    faults = {picture("PNG", 1): "refusal", picture("PNG", 2): "nothing", picture("PNG", 3): "500"}
    with FakeServer(fault=lambda question, times: faults.get(question.images[0])) as server:
        model = chat(server)
        done = symbal_hf.caption(folder, model=model, out=tmp_path / "c.jsonl", store=store)
        assert [row["id"] for row in lines(done.path)] == ["0", "4", "5", "6"]
        assert (done.rows, done.captioned, done.failed) == (8, 4, 3)
        reasons = {row.row_id: row.reason for row in done.skipped}
        assert list(reasons) == ["1", "2", "3", "7"]
        for row_id, said in (("1", "refused: \"I'm sorry"), ("2", "wrote nothing"), ("3", "500"), ("7", "unreadable")):
            assert said in reasons[row_id]
        assert done.provenance["skipped"] == [{"row_id": r.row_id, "reason": r.reason} for r in done.skipped]
        assert len(server.questions) == 7  # the broken file is shown to nobody
        faults.clear()
        again = symbal_hf.caption(folder, model=model, out=tmp_path / "c.jsonl", store=store)
        assert [q.images[0] for q in server.questions[7:]] == [picture("PNG", 3)]
        assert [row["id"] for row in lines(again.path)] == ["0", "3", "4", "5", "6"]
    with pytest.raises(BadData, match=r"row 7 of images in photos: unreadable image: .*on_bad_row='warn'"):
        symbal_hf.caption(folder, model=model, out=tmp_path / "d.jsonl", store=store, on_bad_row="error")


@pytest.mark.parametrize("fault", ["500", "refusal", "nothing", "401"])
def test_no_caption_at_all_is_an_error_and_leaves_no_file(tmp_path, store, fault):
    with FakeServer(fault=lambda question, times: fault) as server, pytest.raises(ChatFailed) as caught:
        symbal_hf.caption(photos(tmp_path / "photos"), model=chat(server), out=tmp_path / "c.jsonl", store=store)
    assert "\n" not in str(caught.value) and "#m" in str(caught.value)
    assert {path.name for path in tmp_path.iterdir()} & {"c.jsonl", "c.jsonl.meta.json"} == set()
    (tmp_path / "photos" / "0.png").write_bytes(b"no picture")
    with pytest.raises(BadData, match="none of the 1 images of images in photos can be read"):
        symbal_hf.caption(tmp_path / "photos", model=chat(server), out=tmp_path / "c.jsonl", limit=1, store=store)


def test_a_last_handful_that_fails_is_no_reason_to_lose_the_others(tmp_path, store, monkeypatch):
    monkeypatch.setattr("symbal_hf.models.parts.AT_ONCE", 4)
    last = {picture("PNG", i) for i in (4, 5)}
    with FakeServer(fault=lambda question, times: "400" if question.images[0] in last else None) as server:
        done = symbal_hf.caption(photos(tmp_path / "p"), model=chat(server), out=tmp_path / "c.jsonl", store=store)
    assert (done.captioned, done.failed) == (4, 2)


def test_a_run_that_is_killed_goes_on_where_it_was(tmp_path):
    folder, out = photos(tmp_path / "photos", 120), tmp_path / "c.jsonl"
    with FakeServer(latency=0.05) as server:
        words = ["caption", folder, "--model", f"openai:{server.url}#m", "--out", out, "--concurrency", "4"]
        words = list(map(str, words))
        program = [sys.executable, "-c", "from symbal_hf.cli.app import main; main()"]
        first = subprocess.Popen([*program, *words], stderr=subprocess.PIPE, stdout=subprocess.PIPE)
        end = time.monotonic() + 120
        while server.answered < 30 and time.monotonic() < end:
            time.sleep(0.01)
        first.send_signal(signal.SIGKILL)
        first.communicate()
        asked = len(server.questions)
        assert 30 <= asked < 120 and [p.name for p in tmp_path.iterdir() if p.name.startswith("c.")] == []
        assert CliRunner().invoke(app, words).exit_code == 0
        assert len(lines(out)) == 120
        times = Counter(question.images[0] for question in server.questions)
        assert len(times) == 120 and sum(times.values()) <= 120 + 4  # those that were under way are asked again
        whole = len(server.questions)
        assert CliRunner().invoke(app, words).exit_code == 0
        assert len(server.questions) == whole


@pytest.mark.parametrize("text", ["I’m sorry, but I can't see it.", "I cannot describe people.", "As an AI model, I",
                                  "Unfortunately, no image was given.", "No image was provided.",
                                  "Please upload the image."])  # fmt: skip
def test_refusals_are_known_and_captions_are_none(text):
    assert REFUSAL.match(text)
    for caption in ("A man is sorry.", "I see a dog.", "No image of a cat hangs there.", "As an aid, a cane.", "I can"):
        assert not REFUSAL.match(caption)


@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA", "CMYK", "P", "I;16", "turned"])
def test_a_server_sees_the_pixels_that_a_model_in_process_sees(tmp_path, store, server, mode):
    image = Image.open(io.BytesIO(picture("PNG", 3))).resize((20, 12))
    options = {}
    if mode == "turned":
        options["exif"] = Image.Exif()
        options["exif"][0x0112] = 6
    elif mode == "RGBA":
        image.putalpha(Image.linear_gradient("L").resize(image.size))
    elif mode == "I;16":
        image = Image.frombytes("I;16", (4, 2), bytes(range(16)))
    else:
        image = image.convert(mode)
    form = "jpg" if mode in ("CMYK", "turned") else "png"
    image.save(tmp_path / f"a.{form}", **options)
    symbal_hf.caption(tmp_path / f"a.{form}", model=chat(server), out=tmp_path / "c.jsonl", store=store)
    (question,) = server.questions
    (encoded,) = question.images
    with Image.open(io.BytesIO(encoded)) as seen:
        assert seen.mode in ("RGB", "L") and seen.getexif().get(0x0112, 1) == 1
    wanted = decode((tmp_path / f"a.{form}").read_bytes())
    assert decode(encoded).tobytes() == wanted.tobytes() and decode(encoded).size == wanted.size
    assert (encoded == (tmp_path / f"a.{form}").read_bytes()) == (mode in ("RGB", "L"))
    assert question.prompt == PROMPT and lines(tmp_path / "c.jsonl")[0]["caption"] == essay(PROMPT, (encoded,))
