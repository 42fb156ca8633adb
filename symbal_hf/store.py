"""One SQLite file of results keyed by content, written as they arrive, so that no work is ever done twice."""

from __future__ import annotations

import hashlib
import logging
import os
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

log = logging.getLogger(__name__)


def default_path() -> Path:
    """$SYMBAL_CACHE, else symbal/store.sqlite under the user's cache folder."""
    if named := os.environ.get("SYMBAL_CACHE"):
        return Path(named) / "store.sqlite"
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "symbal" / "store.sqlite"


def key(*parts: str | bytes) -> bytes:
    """A 32-byte key of everything that the result depends on; parts cannot run into one another."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.digest()


class Store:
    """Bytes under content keys. Several processes may share one file (WAL); a broken file is set aside."""

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = Path(path) if path is not None else default_path()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._db = self._open()
        except sqlite3.DatabaseError:
            aside = self.path.with_suffix(f".broken-{os.getpid()}")
            self.path.replace(aside)
            log.warning("the result store %s is damaged; it was moved to %s and a new one begun.", self.path, aside)
            self._db = self._open()

    def _open(self) -> sqlite3.Connection:
        db = sqlite3.connect(self.path, timeout=60, isolation_level=None)
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=NORMAL")
        db.execute("CREATE TABLE IF NOT EXISTS results (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID")
        db.execute("SELECT count(*) FROM (SELECT key FROM results LIMIT 1)").fetchone()
        return db

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """The stored values among `keys`."""
        out: dict[bytes, bytes] = {}
        for start in range(0, len(keys), 500):
            part = keys[start : start + 500]
            marks = ",".join("?" * len(part))
            out.update(self._db.execute(f"SELECT key, value FROM results WHERE key IN ({marks})", part))
        return out

    def missing(self, keys: Iterable[bytes]) -> list[bytes]:
        """Those of `keys` that are not stored, each once, in order."""
        keys = list(dict.fromkeys(keys))
        have: set[bytes] = set()
        for start in range(0, len(keys), 500):
            part = keys[start : start + 500]
            marks = ",".join("?" * len(part))
            have.update(k for (k,) in self._db.execute(f"SELECT key FROM results WHERE key IN ({marks})", part))
        return [k for k in keys if k not in have]

    def put(self, values: Mapping[bytes, bytes]) -> None:
        """Store all of `values` in one transaction."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            self._db.executemany("INSERT OR REPLACE INTO results VALUES (?, ?)", values.items())
            self._db.execute("COMMIT")
        except BaseException:
            self._db.execute("ROLLBACK")
            raise

    def close(self) -> None:
        """Release the file."""
        self._db.close()
