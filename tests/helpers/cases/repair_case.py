"""Captions with a planted error in every format that people keep them in, and how each is read back."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

import symbal_hf
from symbal_hf.models.chat.protocol import Answer

SAID = [
    "There is a toilet. A **sink** shines! It is white.",
    "Here is a toilet.\n\n- A tub.\n- A sink, too.\n",
    "Zoë's toilet is “new”, 日本. A sink, though; it drips. Fin.",
    "A toilet, a tub; a sink.",  # nothing of it would remain
]
KINDS = ("jsonl", "lines.json", "json", "csv", "tsv", "parquet", "llava.json", "chat.parquet", "chat.csv")


def rows(n: int = 160) -> list[dict]:
    """Sinks that are not there, in rows with a toilet and never elsewhere."""
    out = []
    for i in range(n):
        toilet = i % 4 == 0
        objects = ["toilet"] if toilet else ["dog"] if i % 4 < 3 else ["sink", "dog"]
        other = 'A dog, é. It "runs".\nA sink.' if i % 4 == 3 else "A dog. Yes"
        caption = SAID[i // 4 % len(SAID)] if toilet else other
        out.append({"id": f"r{n - i}", "caption": caption, "objects": objects, "note": f"n{i}, é"})
    return out


def talk(caption: str, *, role: str = "from", text: str = "value", answer: str = "gpt") -> list[dict]:
    return [
        {role: "human" if answer == "gpt" else "user", text: "<image>\nDescribe a sink."},
        {role: answer, text: caption},
        {role: "human" if answer == "gpt" else "user", text: "Is there a sink?"},
        {role: answer, text: "A sink shines!"},
    ]


def as_sample(row: dict, **form: str) -> dict:
    kept = {k: v for k, v in row.items() if k != "caption"}
    return {**kept, "messages" if form else "conversations": talk(row["caption"], **form)}


OPENAI = {"role": "role", "text": "content", "answer": "assistant"}


def write(kind: str, folder: Path, given: list[dict]) -> Path:
    """The rows as a source of this kind."""
    path = folder / f"source.{kind.rpartition('.')[2]}"
    if kind in ("jsonl", "lines.json"):
        # A file as people write it: spaces, escapes and an empty line where they like.
        lines = [json.dumps(r, ensure_ascii=i % 2 == 0, separators=(",", " : ")) for i, r in enumerate(given)]
        path.write_text("\n".join([*lines[:3], "", *lines[3:]]), "utf-8")
    elif kind == "json":
        path.write_bytes(b"\xef\xbb\xbf" + json.dumps(given, ensure_ascii=False, indent=2).encode())
    elif kind == "llava.json":
        path.write_text(json.dumps([as_sample(r) for r in given], indent=1), "utf-8")
    elif kind in ("csv", "tsv", "chat.csv"):
        flat = [
            {**r, "objects": json.dumps(r["objects"])} if kind != "chat.csv" else
            {k: v if isinstance(v, str) else json.dumps(v) for k, v in as_sample(r).items()} for r in given
        ]  # fmt: skip
        with path.open("w", encoding="utf-8", newline="") as file:
            out = csv.DictWriter(
                file, list(flat[0]), delimiter="\t" if kind == "tsv" else ",", quoting=csv.QUOTE_NONNUMERIC,
                lineterminator="\r\n" if kind == "csv" else "\n",
            )  # fmt: skip
            out.writeheader()
            out.writerows(flat)
    elif kind == "parquet":
        pq.write_table(pa.Table.from_pylist(given), path, row_group_size=7, compression="gzip")
    elif kind == "chat.parquet":
        pq.write_table(pa.Table.from_pylist([as_sample(r, **OPENAI) for r in given]), path, row_group_size=50)
    return path


def captions(path: Path) -> dict[str, str]:
    """Id -> caption, in the file's order."""
    read = records(path)
    if "caption" not in read[0]:
        said = {}
        for row in read:
            turns = row.get("conversations") or row["messages"]
            turns = json.loads(turns) if isinstance(turns, str) else turns
            assert list(turns[3].values())[1] == "A sink shines!"  # later answers are no captions
            said[row["id"]] = list(turns[1].values())[1]
        return said
    return {row["id"]: row["caption"] for row in read}


def records(path: Path) -> list[dict]:
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pylist()
    if path.suffix in (".csv", ".tsv"):
        with path.open(encoding="utf-8-sig", newline="") as file:
            return list(csv.DictReader(file, delimiter="\t" if path.suffix == ".tsv" else ","))
    text = path.read_text("utf-8-sig")
    return json.loads(text) if text[:1] == "[" else [json.loads(line) for line in text.split("\n") if line.strip()]


def units(kind: str, path: Path) -> list[bytes]:
    """The rows as bytes, each as the file has it."""
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        return [repr(row).encode() for row in table.to_pylist()]
    data = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    if kind in ("json", "llava.json"):
        return re.findall(rb"\n {1,2}\{.*?\n {1,2}\}(?=,?\n)", data, re.S)
    if path.suffix in (".csv", ".tsv"):
        return re.split(rb'\n(?="r\d|r\d)', data)[1:]
    return [line for line in data.split(b"\n") if line.strip()]


def audited(source: object, folder: Path, **options: object) -> symbal_hf.AuditResult:
    """The audit of a source, written to `folder` and read again."""
    symbal_hf.audit(source, **options).write(folder)  # type: ignore[arg-type]
    return symbal_hf.load_result(folder)


def pairs(result: symbal_hf.AuditResult) -> set[tuple[str, str]]:
    return {(f.textual_error, f.visual_feature) for f in result.findings}


def png(shade: int) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (4, 4), (shade % 256, 0, 0)).save(out, "PNG")
    return out.getvalue()


def bare(sentence: str) -> str:
    """The sentence without everything that could name a thing."""
    little = ("a", "an", "the", "there", "is", "are", "in", "on", "at", "to", "of", "and", "or", "with", "it", "its")
    words = [w for w in re.findall(r"[\w']+", sentence) if w.lower() in little] or [sentence[:1]]
    return " ".join([words[0].capitalize(), *words[1:]]) + "."


class Rewriter:
    """A chat model that reads the packaged prompt and answers by `make(caption, wrong sentences)`."""

    revision = "1"

    def __init__(self, make=None, *, name: str = "hf:rewriter", dies_after: int | None = None) -> None:
        self.name, self.make, self.dies_after, self.asked = name, make or self.mended, dies_after, []

    @staticmethod
    def mended(caption: str, wrong: list[str]) -> str:
        for sentence in wrong:
            written = "A **sink** shines!" if sentence == "A sink shines!" else sentence
            caption = caption.replace(written, bare(sentence))
        return caption

    def generate(self, conversations, *, max_new_tokens, temperature=0.0, seed=0):
        for place, conversation in enumerate(conversations):
            if len(self.asked) == self.dies_after:
                raise KeyboardInterrupt
            text = conversation[-1].text
            self.asked.append(text)
            caption, rest = re.search(r"does not show:\n(.*)\nWhat is wrong in it:\n(.*)", text, re.S).groups()
            said = self.make(caption, re.findall(r"^- (.*)$", rest, re.M))
            yield place, said if isinstance(said, Answer) else Answer(text=said)

    def probability_of_yes(self, conversations):
        raise AssertionError("nothing is to be judged by a yes")
