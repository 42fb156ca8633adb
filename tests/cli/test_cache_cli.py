"""The store can be looked at and made smaller, and stores of before are read as if nothing had changed."""

from __future__ import annotations

import sqlite3
import time

import pytest
from typer.testing import CliRunner

from symbal_hf.cli.cache import DAY, cache
from symbal_hf.core.errors import BadData
from symbal_hf.core.store import Kind, Store, key


def symbal(*arguments: object) -> str:
    result = CliRunner().invoke(cache, list(map(str, arguments)))
    if result.exception is not None:
        raise result.exception
    return result.output


@pytest.fixture
def path(tmp_path, monkeypatch):
    """The default store; its time can be set by `at`."""
    monkeypatch.setenv("SYMBAL_CACHE", str(tmp_path))
    return tmp_path / "store.sqlite"


def put(path, kind: str, n: int, *, size: int = 1000, days_ago: float = 0.0, monkeypatch) -> list[bytes]:
    keys = [key(kind, str(i), str(days_ago)) for i in range(n)]
    at = time.time() - days_ago * DAY
    with monkeypatch.context() as patch:
        patch.setattr(time, "time", lambda: at)
        store = Store(path)
        store.put(dict.fromkeys(keys, bytes(size)), kind=kind)
        store.close()
    return keys


def test_info_counts_entries_by_kind_and_age(path, monkeypatch):
    assert symbal("info") == f"no store at {path} yet\n"
    assert not path.exists()
    put(path, "image", 30, size=100_000, days_ago=40, monkeypatch=monkeypatch)
    put(path, "image", 10, size=100_000, days_ago=2, monkeypatch=monkeypatch)
    put(path, "chat", 7, monkeypatch=monkeypatch)
    first, *rest = symbal("info").splitlines()
    assert first.startswith(f"{path}: 4.") and first.endswith("MB on disk, 47 entries")
    assert rest == [
        "  chat: 7 entries, 0.0 MB, put 0.0 days ago to 0.0 days ago",
        "  image: 40 entries, 4.0 MB, put 40.0 days ago to 2.0 days ago",
    ]


def test_a_store_of_before_keeps_its_results_and_works_on(path, monkeypatch):
    old = sqlite3.connect(path, isolation_level=None)
    old.execute("PRAGMA journal_mode=WAL")
    old.execute("CREATE TABLE results (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID")
    keys = [key(str(i)) for i in range(20)]
    old.executemany("INSERT INTO results VALUES (?, ?)", [(k, b"old") for k in keys])
    store = Store(path)
    assert store.get(keys) == dict.fromkeys(keys, b"old")
    assert store.kinds() == [Kind("", 20, 60, 0, 0)]
    store.put({keys[0]: b"newer"}, kind="text")
    old.execute("INSERT OR REPLACE INTO results VALUES (?, ?)", (key("later"), b"by a program of before"))
    assert [(kind.kind, kind.entries) for kind in store.kinds()] == [("", 20), ("text", 1)]
    assert store.get([keys[0], key("later")]) == {keys[0]: b"newer", key("later"): b"by a program of before"}
    assert "(no kind): 20 entries" in symbal("info") and "nobody knows when" in symbal("info")
    assert not list(path.parent.glob("*.broken*"))
    symbal("prune", "--older-than", 1)
    assert store.get([*keys, key("later")]) == {keys[0]: b"newer"}


def test_prune_by_age_forgets_exactly_the_old(path, monkeypatch):
    old = put(path, "image", 600, days_ago=31, monkeypatch=monkeypatch)
    new = put(path, "chat", 5, days_ago=29, monkeypatch=monkeypatch)
    assert symbal("prune", "--older-than", 30, "--dry-run").startswith("would forget 600 entries, 0.6 MB")
    assert Store(path).missing(old + new) == []
    assert symbal("prune", "--older-than", 30).startswith("forgot 600 entries, 0.6 MB")
    assert Store(path).missing(old + new) == old
    assert symbal("prune", "--older-than", 30).startswith("forgot 0 entries")


def test_prune_to_a_size_keeps_the_newest_and_gives_the_disk_back(path, monkeypatch):
    by_age = {days: put(path, "image", 10, size=100_000, days_ago=days, monkeypatch=monkeypatch) for days in (3, 1, 2)}
    before = sum(part.stat().st_size for part in path.parent.iterdir())
    symbal("prune", "--keep-newest-mb", 2)
    store = Store(path)
    assert store.missing(by_age[1] + by_age[2]) == []
    assert store.missing(by_age[3]) == by_age[3]
    assert path.stat().st_size < 0.75 * before
    symbal("prune", "--keep-newest-mb", 0)
    assert Store(path).kinds() == []


def test_prune_without_a_rule_or_a_store_does_nothing(path, tmp_path):
    with pytest.raises(BadData, match="--older-than DAYS, --keep-newest-mb N"):
        symbal("prune")
    assert symbal("prune", "--older-than", 1, "--store", tmp_path / "no") == f"no store at {tmp_path / 'no'} yet\n"
    store = Store(path)
    store.put({b"a": b"1"})
    assert store.prune() == (0, 0) and store.missing([b"a"]) == []


def test_a_store_in_use_is_pruned_too(path, monkeypatch):
    old = put(path, "image", 10, days_ago=9, monkeypatch=monkeypatch)
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, **{**k, "timeout": 0.05}))
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    assert reader.execute("SELECT count(*) FROM results").fetchone() == (10,)
    assert symbal("prune", "--older-than", 1).startswith("forgot 10 entries")
    assert reader.execute("SELECT count(*) FROM results").fetchone() == (10,)
    reader.execute("COMMIT")
    store = Store(path)
    assert store.missing(old) == old
    store.put({old[0]: b"again"}, kind="image")
    assert store.get(old) == {old[0]: b"again"}
