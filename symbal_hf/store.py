"""One SQLite file of results keyed by content, written as they arrive, so that no work is ever done twice."""

from __future__ import annotations

import hashlib
import logging
import os
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from symbal_hf.files import cache_folder

log = logging.getLogger(__name__)
T = TypeVar("T")
BROKEN = (sqlite3.DatabaseError, UnicodeDecodeError)  # the second where SQLite quotes a garbled table definition


def default_path() -> Path:
    """The store in the cache folder of the user."""
    return cache_folder() / "store.sqlite"


def key(*parts: str | bytes) -> bytes:
    """A 32-byte key of everything that the result depends on; parts cannot run into one another."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.digest()


def _damaged(error: Exception) -> bool:
    """True when the file itself is broken; busy, full, read-only or out of reach is not broken."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return (
        isinstance(error, UnicodeDecodeError)
        or code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
        or "unsupported file format" in str(error)
    )


class Store:
    """Bytes under content keys. Several processes may share one file (WAL); a broken file is set aside."""

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = Path(path) if path is not None else default_path()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._open()
        except BROKEN as error:
            self._begin_anew(error)

    def _open(self) -> None:
        self._db = sqlite3.connect(self.path, timeout=60, isolation_level=None)
        self._file = self.path.stat().st_ino
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.execute("CREATE TABLE IF NOT EXISTS results (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID")
        self._db.execute("SELECT count(*) FROM (SELECT key FROM results LIMIT 1)").fetchone()

    def _begin_anew(self, error: Exception) -> None:
        """Set the broken file aside and open a new one; an error that is not the file's is raised again."""
        if not _damaged(error):
            raise error
        with suppress(sqlite3.Error):
            self._db.close()
        # Another process may have set the file aside already; then its new one is the one to use.
        if self.path.exists() and self.path.stat().st_ino == self._file:
            aside = self.path.with_suffix(f".broken-{os.getpid()}")
            for end in ("", "-wal", "-shm"):
                with suppress(FileNotFoundError):
                    Path(f"{self.path}{end}").replace(f"{aside}{end}")
            log.warning("the result store %s is damaged; it was moved to %s and a new one begun.", self.path, aside)
        self._open()

    def _sound(self, work: Callable[[], T]) -> T:
        """The result of `work`, done again in a new file where the old one proves broken."""
        try:
            return work()
        except BROKEN as error:
            self._begin_anew(error)
        return work()

    def _select(self, columns: str, keys: Sequence[bytes]) -> list[Any]:
        rows: list[Any] = []
        for start in range(0, len(keys), 500):
            part = keys[start : start + 500]
            marks = ",".join("?" * len(part))
            rows.extend(self._db.execute(f"SELECT {columns} FROM results WHERE key IN ({marks})", part))
        return rows

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """The stored values among `keys`."""
        return dict(self._sound(lambda: self._select("key, value", keys)))

    def missing(self, keys: Iterable[bytes]) -> list[bytes]:
        """Those of `keys` that are not stored, each once, in order."""
        keys = list(dict.fromkeys(keys))
        have = {k for (k,) in self._sound(lambda: self._select("key", keys))}
        return [k for k in keys if k not in have]

    def put(self, values: Mapping[bytes, bytes]) -> None:
        """Store all of `values` in one transaction."""
        self._sound(lambda: self._write(values))

    def _write(self, values: Mapping[bytes, bytes]) -> None:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            self._db.executemany("INSERT OR REPLACE INTO results VALUES (?, ?)", values.items())
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:  # SQLite has rolled back by itself after a full disk or a damaged page
                self._db.execute("ROLLBACK")
            raise

    def close(self) -> None:
        """Release the file."""
        self._db.close()
