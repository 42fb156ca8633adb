"""Captions beside their images, as text files or as URLs: nothing is fetched unasked, and what fails is told."""

import io
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from symbal_hf.data import download
from symbal_hf.data.table import load_data


def png(shade=0):
    out = io.BytesIO()
    Image.new("RGB", (4, 4), (shade, 0, 0)).save(out, "PNG")
    return out.getvalue()


def shade(data, row):
    return Image.open(io.BytesIO(data.images.encoded(row))).getpixel((0, 0))[0]


def test_conceptual_captions_have_no_header_and_quotes_are_theirs(tmp_path):
    lines = ['a "very typical bus station\thttp://x.org/a.jpg?s=1&d="2', "sierra looked stunning\thttps://x.org/b.jpg",
             "broken line", "", "blue sky\t  HTTP://x.org/c.jpg"]  # fmt: skip
    (tmp_path / "Train_GCC-training.tsv").write_text("\n".join(lines), "utf-8")
    data = load_data(tmp_path / "Train_GCC-training.tsv")
    assert data.captions == ('a "very typical bus station', "sierra looked stunning", "blue sky")
    assert data.source == "captions with URLs Train_GCC-training.tsv"
    assert [(s.row_id, s.reason.partition(";")[0]) for s in data.skipped] == [("2", "its line has 1 fields")]
    (tmp_path / "turned.tsv").write_text("https://x.org/b.jpg\ta dog\n", "utf-8")
    assert load_data(tmp_path / "turned.tsv").captions == ("a dog",)
    (tmp_path / "named.tsv").write_text("caption\turl\na dog\thttps://x.org/b.jpg\n", "utf-8")
    named = load_data(tmp_path / "named.tsv")
    assert named.captions == ("a dog",) and named.images is not None and named.source == "named.tsv"


def test_a_folder_of_images_with_texts_beside_them(tmp_path):
    for name, text in (("a.jpg", "A cat."), ("10_dog/b.png", "1girl, solo, smile"), ("10_dog/c.webp", None)):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(png(len(name)))
        if text:
            path.with_suffix(".txt").write_text(text, "utf-8-sig")
    (tmp_path / "README.txt").write_text("What this is.", "utf-8")
    (tmp_path / "d.png").write_bytes(png())
    (tmp_path / "d.txt").write_bytes(b"caf\xe9")
    data = load_data(tmp_path)
    assert dict(zip(data.ids, data.captions, strict=True)) == {"10_dog/b": "1girl, solo, smile", "a": "A cat."}
    assert {s.row_id: "UTF-8" in s.reason for s in data.skipped} == {"10_dog/c": False, "d": True}
    assert data.source == f"images with text files in {tmp_path.name}"
    assert shade(data, data.ids.index("a")) == len("a.jpg")


def test_two_images_with_one_text_have_ids_of_their_own(tmp_path):
    for name in ("a.jpg", "a.png"):
        (tmp_path / name).write_bytes(png())
    (tmp_path / "a.txt").write_text("A cat.")
    assert load_data(tmp_path).ids == ("a.jpg", "a.png")


def test_a_table_beside_images_comes_before_their_texts_unless_these_are_asked_for(tmp_path):
    (tmp_path / "a.png").write_bytes(png())
    (tmp_path / "a.txt").write_text("A cat.")
    turns = [{"from": "human", "value": "<image>"}, {"from": "gpt", "value": "A dog."}]
    (tmp_path / "llava.json").write_text(json.dumps([{"id": 1, "image": "a.png", "conversations": turns}]))
    (tmp_path / "vocab.json").write_text('["cat", "dog"]')
    assert load_data(tmp_path).source == f"LLaVA/ShareGPT4V JSON {tmp_path.name}/llava.json"
    assert load_data(tmp_path, source_format="sidecars").captions == ("A cat.",)


# --------------------------------------------------------------------------------------------------- images by URL


@pytest.fixture
def server():
    class Pictures(BaseHTTPRequestHandler):
        asked: list[str] = []  # noqa: RUF012 - one for each server

        def do_GET(self):
            self.asked.append(self.path)
            others = {"/big": b"x" * 5000, "/page": b"<html>"}
            content = png(8) if self.path.startswith("/ok") else others.get(self.path, b"")
            self.send_response(200 if content else 404)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args):
            pass

    Pictures.asked = []
    http = HTTPServer(("127.0.0.1", 0), Pictures)
    threading.Thread(target=http.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{http.server_port}", Pictures.asked
    http.shutdown()
    http.server_close()


@pytest.mark.parametrize("form", ["rows", "parquet", "struct", "list", "LAION"])
def test_an_image_at_a_url_is_fetched_once_and_only_when_allowed(server, tmp_path, monkeypatch, form):
    monkeypatch.setenv("SYMBAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    url, asked = f"{server[0]}/ok?{form}", server[1]
    image = {"struct": {"bytes": None, "path": url}, "list": [url]}.get(form, url)
    source = [{"URL": url, "TEXT": "A cat."} if form == "LAION" else {"image": image, "caption": "A cat."}]
    if form in ("parquet", "struct"):
        pq.write_table(pa.Table.from_pylist(source), tmp_path / "a.parquet")
        source = tmp_path / "a.parquet"
    with pytest.raises(ValueError, match=r"its image is at http://.*--allow-download"):
        load_data(source).images.encoded(0)
    assert not asked
    for _ in range(2):
        data = load_data(source, allow_download=True)
        assert shade(data, 0) == 8 and shade(data.without({}), 0) == 8
    assert len(asked) == 1


def test_a_url_that_gives_no_image_is_a_reason(server, tmp_path, monkeypatch):
    monkeypatch.setenv("SYMBAL_CACHE", str(tmp_path))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(download, "MOST_BYTES", 4000)
    complaints = {
        f"{server[0]}/page": "is no image", f"{server[0]}/gone": "answers 404", f"{server[0]}/big": "more than",
        "http://127.0.0.1:9/x": "no image at", "http://": "no image at", "data:image/png,abc": ";base64",
    }  # fmt: skip
    images = load_data([{"image": url, "caption": "A cat."} for url in complaints], allow_download=True).images
    for row, complaint in enumerate(complaints.values()):
        with pytest.raises(ValueError, match=complaint):
            images.encoded(row)
    assert list(tmp_path.iterdir()) == []
