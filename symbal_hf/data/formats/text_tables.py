"""Tables of text with one row a record: CSV and TSV, and the headerless TSV of captions and URLs."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from symbal_hf.core.errors import BadData
from symbal_hf.data.columns import Unusable
from symbal_hf.data.download import is_url
from symbal_hf.data.formats.conversations import edited_value
from symbal_hf.data.formats.plain_text import TextFile, cell, lines, written
from symbal_hf.data.formats.protocol import ERRORS, FLAG, Edits, Row, check_columns

csv.field_size_limit(2**31 - 1)  # characters of one, at most


class Delimited(TextFile):
    """CSV or TSV with a header."""

    def __init__(self, name: str, delimiter: str) -> None:
        self.name, self.delimiter = name, delimiter

    def sniff(self, path: Path) -> bool:
        return path.suffix.lower() == f".{self.name}"

    def read(self, path: Path) -> Iterator[Row]:
        yield from csv.DictReader(lines(path), delimiter=self.delimiter)

    def edited(self, source: Path, edits: Edits) -> Iterator[str]:
        header: list[str] = []
        number = 0
        for raw, fields in self._records(source):
            body = raw.rstrip("\r\n")
            end = raw[len(body) :]
            if not fields:
                yield raw
            elif not header:
                header = fields
                check_columns(header, edits)
                index = len(header) - 1 - header[::-1].index(edits.column)  # of equal names the last counts
                yield body + self.delimiter + self.record([FLAG, ERRORS]) + end if edits.flags else raw
            else:
                keep = True
                if number in edits.wrong:
                    keep, caption = edited_value(edits, number, fields[index])
                    if caption != fields[index]:
                        fields[index] = caption
                        body = self.record(fields)
                if edits.flags:
                    body += self._flags(source, edits, number, len(fields), len(header))
                if keep:
                    yield body + end
                number += 1
        edits.passes(number)

    def _flags(self, source: Path, edits: Edits, number: int, fields: int, names: int) -> str:
        """The fields to be added to a row of so many under so many names."""
        if fields > names:
            raise BadData(
                f"row {number} of {source.name} has {fields} fields under {names} names, so that no "
                "column can be added; mend it or give --output-format jsonl (output_format='jsonl')."
            )
        added = self.record([cell(value) for value in edits.flag_of(number).values()])
        return self.delimiter * (names - fields + 1) + added

    def _records(self, source: Path) -> Iterator[tuple[str, list[str]]]:
        """Each record as it is written, and its fields; no fields for an empty line."""
        taken: list[str] = []

        def noted() -> Iterator[str]:
            for line in lines(source):
                taken.append(line)
                yield line

        for fields in csv.reader(noted(), delimiter=self.delimiter):
            yield "".join(taken), fields
            taken.clear()

    def record(self, fields: Sequence[str]) -> str:
        """The fields as one record, without its end."""
        out = io.StringIO()
        # This end lets the writer quote both signs of it where they occur.
        csv.writer(out, delimiter=self.delimiter, lineterminator="\r\n").writerow(fields)
        return out.getvalue().removesuffix("\r\n")

    def write(self, rows: Iterable[Row], columns: Sequence[str]) -> Iterator[str]:
        yield self.record(columns) + "\n"
        for row in rows:
            yield self.record([written(row.get(name), name, self.name) for name in columns]) + "\n"


CSV, TSV = Delimited("csv", ","), Delimited("tsv", "\t")


class UrlLines(TextFile):
    """Conceptual Captions and its like: a caption and a URL a line, in either order, without a header or quotes."""

    name, columns, about = "url-tsv", ["image", "caption"], "captions with URLs"

    def sniff(self, path: Path) -> bool:
        return path.suffix.lower() == ".tsv" and _url_field(path) is not None

    def read(self, path: Path) -> Iterator[Row]:
        if (url_field := _url_field(path)) is None:
            raise BadData(f"{path}: the first line is not a caption, a tab and a URL; leave source_format at 'auto'.")
        for line in lines(path, "\n"):  # no csv: quotes in these files are part of the captions
            fields = line.rstrip("\r\n").split("\t")
            if fields == [""]:
                continue
            if len(fields) == 2:
                yield {"image": fields[url_field].strip(), "caption": fields[1 - url_field]}
            else:
                problem = f"its line has {len(fields)} fields; expected a caption, a tab and a URL"
                yield {"image": None, "caption": Unusable(problem)}

    def edited(self, source: Path, edits: Edits) -> Iterator[str]:
        if edits.flags:
            raise BadData(f"{source.name} has no header, so that no column can be added; give another output format.")
        url_field, number = _url_field(source) or 0, 0
        for line in lines(source, "\n"):
            body = line.rstrip("\r\n")
            if not body:
                yield line
                continue
            keep = True
            if number in edits.wrong:
                fields = body.split("\t")
                keep, caption = edited_value(edits, number, fields[1 - url_field])
                if caption != fields[1 - url_field]:
                    fields[1 - url_field] = " ".join(caption.split())
                line = "\t".join(fields) + line[len(body) :]
            if keep:
                yield line
            number += 1
        edits.passes(number)


URL_LINES = UrlLines()


def _url_field(path: Path) -> int | None:
    """Which of the two fields of a line is a URL, where the first line has no header but a caption and a URL."""
    with path.open(encoding="utf-8-sig", newline="\n") as file:
        fields = file.readline(1 << 20).rstrip("\r\n").split("\t")
    urls = [index for index, field in enumerate(fields) if is_url(field.strip())]
    return urls[0] if len(fields) == 2 and len(urls) == 1 else None
