"""The columns of a second table added to the rows of a first, by id."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from symbal_hf.core.errors import BadData
from symbal_hf.data.columns import IDS, IMAGES
from symbal_hf.data.formats.protocol import Row, Table, table_of
from symbal_hf.data.opening import open_file

NUMBER = re.compile(r"#\d+$")


def joined(table: Table, path: Path) -> Table:
    """The table with the columns of the second one added by id; a row without a partner gets None.

    Of COCO's captions come the references, of its instances the objects. Images come only where there were none. Where
    no id column has the same name in both, those that they have are compared, and must have most ids in common.
    """
    if not path.is_file():
        raise FileNotFoundError(f"no file {path} to join.")
    second = open_file(path, joining=True)
    first_ids, second_ids = ([n for n in IDS if n in columns] for columns in (table.columns, second.columns))
    if not first_ids or not second_ids:
        raise BadData(f"{path.name} and the source share no id column ({', '.join(IDS)}); rows are paired by id only.")
    id_name = next((n for n in first_ids if n in second_ids), first_ids[0])
    second_id = id_name if id_name in second_ids else second_ids[0]
    has_images = any(name in table.columns for name in IMAGES)
    added = [c for c in second.columns if c not in table.columns and not (has_images and c in IMAGES)]
    rows = list(table)
    partners = _partners(rows, list(second), id_name, second_id, repeated=table.chat is not None)
    if partners is None:
        few = f"no {id_name}" if id_name == second_id else f"not even half of the {id_name}s"
        raise BadData(
            f"{few} of the source occur{'s' if id_name == second_id else ''} in {path.name} ({second_id}); the two "
            "files describe different images."
        )
    out = [{**row, **{c: (p or {}).get(c) for c in added}} for row, p in zip(rows, partners, strict=True)]
    return replace(table_of(out, [*table.columns, *added]), name=table.name, root=table.root, chat=table.chat)


def _partners(
    rows: Sequence[Row], others: Sequence[Row], id_name: str, other_id: str, *, repeated: bool
) -> list[Row | None] | None:
    """For each row the one with its id, or None where too few have one.

    `repeated`: several samples of one image, whose ids are numbered, have the partner of that image.
    """
    for as_number in (False, True):  # 000000000139 is COCO's 139, where no id is the same as it stands
        by_id = {_key(row.get(other_id), as_number): row for row in others if row.get(other_id) is not None}
        partners = [by_id.get(_key(row.get(id_name), as_number)) for row in rows]
        if repeated:
            bare = (_key(NUMBER.sub("", str(row.get(id_name))), as_number) for row in rows)
            partners = [partner or by_id.get(key) for partner, key in zip(partners, bare, strict=True)]
        matched = sum(partner is not None for partner in partners)
        if matched and (id_name == other_id or matched > len(rows) / 2):
            return partners
    return None


def _key(value: Any, as_number: bool) -> str | None:
    key = None if value is None else str(value)
    return key.lstrip("0") or "0" if as_number and key is not None and key.isdecimal() else key
