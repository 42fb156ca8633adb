"""One SQLite file of results keyed by content, written as they arrive, so that no work is ever done twice."""

from __future__ import annotations

import hashlib
import logging
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from symbal_hf.core.files import cache_folder

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


@dataclass(frozen=True)
class Kind:
    """The stored results of one kind.

    Attributes:
        kind: as named when they were put; "" for results of files that knew no kinds.
        entries: how many.
        size: bytes of their values.
        oldest, newest: when they were put, in seconds since 1970; 0 where nobody knows.
    """

    kind: str
    entries: int
    size: int
    oldest: float
    newest: float


PATIENCE = 60.0  # seconds to wait for another process


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
        self._db = sqlite3.connect(self.path, timeout=PATIENCE, isolation_level=None)
        self._file = self.path.stat().st_ino
        self._to_wal()
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.execute("CREATE TABLE IF NOT EXISTS results (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID")
        # A table of its own, so that files of before, and programs of before at the same file, go on as they are.
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS notes "
            "(key BLOB PRIMARY KEY, kind TEXT NOT NULL, at REAL NOT NULL) WITHOUT ROWID"
        )
        self._db.execute("SELECT count(*) FROM (SELECT key FROM results LIMIT 1)").fetchone()

    def _to_wal(self) -> None:
        """Switch the file to its journal; of many that open a new one at once SQLite turns all but one away unheard."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                self._db.execute("PRAGMA journal_mode=WAL")
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > end:
                    raise
                time.sleep(0.02)

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

    def put(self, values: Mapping[bytes, bytes], *, kind: str = "") -> None:
        """Store all of `values` in one transaction, under the name of their `kind`."""
        self._sound(lambda: self._write(values, kind))

    def _write(self, values: Mapping[bytes, bytes], kind: str) -> None:
        now = time.time()

        def write() -> None:
            self._db.executemany("INSERT OR REPLACE INTO results VALUES (?, ?)", values.items())
            self._db.executemany("INSERT OR REPLACE INTO notes VALUES (?, ?, ?)", ((k, kind, now) for k in values))

        self._at_once(write)

    def _at_once(self, work: Callable[[], T]) -> T:
        """The result of `work` as one transaction, which is done whole or not at all."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            result = work()
            self._db.execute("COMMIT")
            return result
        except BaseException:
            if self._db.in_transaction:  # SQLite has rolled back by itself after a full disk or a damaged page
                self._db.execute("ROLLBACK")
            raise

    def kinds(self) -> list[Kind]:
        """What is stored, by kind in alphabetical order."""
        rows = self._sound(
            lambda: self._db.execute(
                "SELECT coalesce(kind, ''), count(*), sum(length(value)), min(coalesce(at, 0)), max(coalesce(at, 0)) "
                "FROM results LEFT JOIN notes USING (key) GROUP BY 1 ORDER BY 1"
            ).fetchall()
        )
        return [Kind(*row) for row in rows]

    def prune(
        self, *, before: float | None = None, keep_bytes: int | None = None, dry_run: bool = False
    ) -> tuple[int, int]:
        """Forget what was put before a time (seconds since 1970), and all but the newest `keep_bytes` of values.

        Results without a date count as the oldest. No run may be using the store meanwhile.

        Returns:
            How many results went, and the bytes of their values; with `dry_run` what would go.
        """
        if before is None and keep_bytes is None:
            return 0, 0

        def work() -> tuple[int, int]:
            gone, freed, kept = [], 0, 0
            for k, size, at in self._db.execute(
                "SELECT key, length(value), coalesce(at, 0) FROM results LEFT JOIN notes USING (key) ORDER BY 3 DESC"
            ):
                kept += size
                if (before is not None and at < before) or (keep_bytes is not None and kept > keep_bytes):
                    gone.append((k,))
                    freed += size
            if not dry_run:
                for table in ("results", "notes"):
                    self._db.executemany(f"DELETE FROM {table} WHERE key = ?", gone)
            return len(gone), freed

        entries, freed = self._sound(lambda: self._at_once(work))
        if entries and not dry_run:
            with suppress(sqlite3.OperationalError):  # another process reads: the space is used again later
                self._db.execute("VACUUM")
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return entries, freed

    def close(self) -> None:
        """Release the file."""
        self._db.close()

    @contextmanager
    def released(self) -> Iterator[None]:
        """Closed for a while: what SQLite knows of an open file must not be carried into a forked process."""
        self.close()
        try:
            yield
        finally:
            self._open()
