"""Files and servers that the options of commands are tried on."""

from __future__ import annotations

import csv
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from pathlib import Path

from chat_fakes import FakeServer, picture
from repair_case import rows as repair_rows

import symbal_hf
from symbal_hf.cli.app import run
from symbal_hf.core.store import Store, key

OLD = Path(__file__).parents[1] / "assets" / "version_0_1" / "benchmark"


@contextmanager
def pages(folder: Path) -> Iterator[str]:
    """The address of a server on loopback that has the files of a folder."""
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class Ground:
    """Files that the cases are about."""

    def __init__(self, top: Path, server: FakeServer, pages: str) -> None:
        self.top, self.server, self.chat = top, server.url, f"openai:{server.url}#m"
        rows = repair_rows()
        self.rows = self.table("rows.jsonl", rows)
        self.fewer = self.table("fewer.jsonl", rows[:120])
        self.plain = self.table("plain.jsonl", [{"id": r["id"], "caption": r["caption"]} for r in rows])
        self.objects = self.table("objects.jsonl", [{"id": r["id"], "objects": r["objects"]} for r in rows])
        self.bad = self.table("bad.jsonl", [*rows, {"id": "x", "caption": None, "objects": []}])
        self.links = self.table("links.jsonl", [{**r, "image": f"{pages}/{i}.png"} for i, r in enumerate(rows)])
        self.seen = self.table("seen.jsonl", [{**r, "image": f"{i}.png"} for i, r in enumerate(rows)])
        for folder, pictures in ((top, len(rows)), (top / "photos", 4), (top / "elsewhere", len(rows))):
            folder.mkdir(exist_ok=True)
            for n in range(pictures):
                (folder / f"{n}.png").write_bytes(picture("PNG", n + len(rows) * (folder.name == "elsewhere")))
        self.nowhere = top / "nowhere.jsonl"
        self.words = top / "words.txt"
        self.words.write_text("sink\ntoilet\ndog\n")
        result = symbal_hf.audit(self.rows)
        result.write(top / "audit")
        doubtful = tuple(replace(f, state="suspected", reason="one judge says so") for f in result.findings)
        replace(result, verdict="none", findings=(), suspects=doubtful).write(top / "doubtful")
        symbal_hf.audit(self.fewer).write(top / "fewer")
        symbal_hf.audit(self.seen, image_root=top).write(top / "pictured")
        symbal_hf.audit(self.links).write(top / "linked")
        # What is known from before is said: let it be known whichever case comes first.
        assert run(["caption", str(top / "photos"), "--model", self.chat, "--out", str(top / "captions.jsonl")]) == 0
        self.audit, self.runs, self.doubtful = top / "audit", top / "runs", top / "doubtful"
        self.pictured, self.linked = top / "pictured", top / "linked"
        assert run(["bench", "run", str(OLD), "--out", str(self.runs), "--limit", "2"]) == 0
        self.names = self.table("names.jsonl", [{"id": n, "textual_error": ["sink"], "visual_feature": ["cat", "dog"]}
                                                for n in range(23)])  # fmt: skip
        self.truth = self.table("truth.jsonl", [{"id": n, "textual_error": "sink" if n % 3 else "tap",
                                                 "visual_feature": "dog" if n % 5 else "cat"}
                                                for n in range(23)])  # fmt: skip
        self.pairs = top / "pairs.csv"
        pairs = [(f"{'dog' if n % 2 else 'cat'} {n}", f"dog {n}", int(n % 3 > 0)) for n in range(23)]
        with self.pairs.open("w") as file:
            csv.writer(file).writerows([("answer", "truth", "same"), *pairs])
        self.kept = top / "kept.sqlite"  # the usual store is every worker's, and grows meanwhile
        Store(self.kept).put({key("a"): b"1"}, kind="text")
        self.ask = top / "prompts"
        self.ask.mkdir()
        packaged = resources.files("symbal_hf.models.chat").joinpath("prompts/same_thing.jinja")
        (self.ask / "same_thing.jinja").write_text(packaged.read_text("utf-8"))

    def table(self, name: str, rows: list[dict]) -> Path:
        (self.top / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
        return self.top / name
