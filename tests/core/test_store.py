"""What was stored is there again, whoever else writes, whatever breaks, and whenever the power goes."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symbal_hf.core.store import Store, default_path, key

LIGHT = settings(max_examples=100)
KEYS = [key(str(i)) for i in range(3000)]
VALUES = {k: k * 10 for k in KEYS}


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "folder" / "store.sqlite"  # the folder is not there yet


def filled(path: Path) -> bytes:
    """A closed store with VALUES at `path`; the bytes of its file."""
    store = Store(path)
    store.put(VALUES)
    store.close()
    return path.read_bytes()


def start(code: str, *arguments: object) -> subprocess.Popen:
    """Another Python process that runs `code` with what this module needs."""
    head = "import sys, os, time\nfrom symbal_hf.core.store import Store, key\n"
    return subprocess.Popen(
        [sys.executable, "-c", head + code, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip


def test_what_was_put_comes_back_also_after_closing(path):
    store = Store(path)
    store.put({key("a"): b"1", key("b"): b"", key("c"): bytes(range(256)) * 1000})
    store.put({key("a"): b"2"})  # the last value counts
    store.put({})
    for opened in (store, Store(path)):
        assert opened.get([key("c"), key("a"), key("x"), key("b"), key("a")]) == {
            key("a"): b"2", key("b"): b"", key("c"): bytes(range(256)) * 1000,
        }  # fmt: skip
    assert store.get([]) == {} and store.missing([]) == []


@pytest.mark.parametrize("n", [499, 500, 501, 3000])
def test_any_number_of_keys_can_be_asked_for(path, n):
    store = Store(path)
    store.put({k: VALUES[k] for k in KEYS[:n]})
    assert store.get(KEYS) == {k: VALUES[k] for k in KEYS[:n]}
    assert store.missing(KEYS) == KEYS[n:]


def test_missing_keys_come_once_and_in_order(path):
    store = Store(path)
    store.put({KEYS[1]: b"x"})
    assert store.missing(iter([KEYS[4], KEYS[1], KEYS[2], KEYS[4], KEYS[0]])) == [KEYS[4], KEYS[2], KEYS[0]]


def test_a_put_that_fails_stores_nothing_and_the_store_stays_usable(path):
    store = Store(path)
    store.put({KEYS[0]: b"old"})
    with pytest.raises(sqlite3.IntegrityError):
        store.put({KEYS[0]: b"new", KEYS[1]: b"new", KEYS[2]: None})
    assert store.get(KEYS[:3]) == {KEYS[0]: b"old"}
    store.put({KEYS[1]: b"later"})
    assert store.missing(KEYS[:3]) == [KEYS[2]]
    assert not list(path.parent.glob("*.broken*"))


def test_the_place_of_the_store_can_be_named(monkeypatch, tmp_path):
    monkeypatch.setenv("SYMBAL_CACHE", str(tmp_path / "here"))
    assert default_path() == tmp_path / "here" / "store.sqlite"
    monkeypatch.delenv("SYMBAL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "there"))
    assert default_path() == tmp_path / "there" / "symbal" / "store.sqlite"
    assert Store().path.is_file()


@given(st.lists(st.binary(max_size=12) | st.text(max_size=6), max_size=5), st.data())
@LIGHT
def test_parts_of_a_key_cannot_run_into_one_another(parts, data):
    whole = b"".join(p if isinstance(p, bytes) else p.encode() for p in parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=4)))
    other = [whole[a:b] for a, b in pairwise([0, *cuts, len(whole)])]
    same = other == [p if isinstance(p, bytes) else p.encode() for p in parts]
    assert (key(*parts) == key(*other)) == same
    assert len(key(*parts)) == 32


def test_keys_keep_the_order_and_number_of_their_parts():
    every = [(), ("",), ("", ""), ("ab",), ("a", "b"), ("b", "a"), ("a", "", "b"), ("ab", ""), ("", "ab")]
    assert len({key(*parts) for parts in every}) == len(every)
    assert key("é", "x") == key("é".encode(), b"x")
    assert key("model", "text").hex().startswith("ca77d721")  # keys of earlier runs must stay valid


def test_two_processes_write_and_read_at_the_same_time(path):
    code = """
store = Store(sys.argv[1])
mine, shared = sys.argv[2], [key("shared", str(i)) for i in range(20)]
for i in range(150):
    store.put({key(mine, str(i)): mine.encode() * 50, shared[i % 20]: b"s" * 99})
    assert len(store.get([key(mine, str(j)) for j in range(i + 1)])) == i + 1
"""
    path.parent.mkdir()
    writers = [start(code, path, name) for name in ("one", "two")]  # neither finds a file yet
    for writer in writers:
        assert writer.communicate(timeout=60)[1] == ""
        assert writer.returncode == 0
    store = Store(path)
    for name in ("one", "two"):
        found = store.get([key(name, str(i)) for i in range(150)])
        assert len(found) == 150 and set(found.values()) == {name.encode() * 50}
    assert store.missing([key("shared", str(i)) for i in range(20)]) == []
    assert not list(path.parent.glob("*.broken*"))


def test_readers_and_writers_do_not_wait_for_one_another(path, monkeypatch):
    filled(path)
    monkeypatch.setattr("symbal_hf.core.store.PATIENCE", 0.05)  # seconds, which a person would wait for longer
    other, store = sqlite3.connect(path, isolation_level=None), Store(path)
    other.execute("BEGIN")  # a reader in the middle of its work
    assert other.execute("SELECT count(*) FROM results").fetchone() == (len(KEYS),)
    store.put({b"new": b"value"})
    assert other.execute("SELECT count(*) FROM results").fetchone() == (len(KEYS),)
    other.execute("COMMIT")
    other.execute("BEGIN IMMEDIATE")  # a writer in the middle of its work
    other.execute("INSERT INTO results VALUES (?, ?)", (b"half", b"done"))
    assert store.missing([KEYS[0], b"new", b"half"]) == [b"half"]
    other.execute("COMMIT")
    assert store.missing([b"half"]) == []


def damage(kind: str, whole: bytes) -> bytes:
    middle = len(whole) // 2
    noise = random.Random(3).randbytes
    return {
        "no database": b"no database at all, " * 500,
        "short text": b"hello",
        "cut at a page": whole[: 4096 * 20],
        "cut in a page": whole[: middle + 77],
        "cut in the header": whole[:60],
        "zeroes in front": bytes(4096) + whole[4096:],
        "zeroes in the middle": whole[:middle] + bytes(len(whole) - middle),
        "noise in the second half": whole[:middle] + noise(len(whole) - middle),
        "noise behind the header": whole[:4096] + noise(len(whole) - 4096),
        "noise in the header": whole[:32] + noise(68) + whole[100:],
        "no table": whole[:4000] + noise(96) + whole[4096:],
    }[kind]


@pytest.mark.parametrize(
    "kind",
    ["no database", "short text", "cut at a page", "cut in a page", "cut in the header", "zeroes in front",
     "zeroes in the middle", "noise in the second half", "noise behind the header", "noise in the header", "no table"],
)  # fmt: skip
def test_a_damaged_file_is_set_aside_and_work_goes_on(path, kind, caplog):
    broken = damage(kind, filled(path))
    path.write_bytes(broken)
    store = Store(path)
    found = store.get(KEYS)
    assert found.items() <= VALUES.items()
    store.put(VALUES)
    assert store.get(KEYS) == VALUES
    (aside,) = [p for p in path.parent.glob("*.broken*") if not p.name.endswith(("-wal", "-shm"))]
    assert aside.stat().st_size >= len(broken) > 0 and str(aside) in caplog.text
    assert Store(path).get(KEYS) == VALUES


@pytest.mark.parametrize("first", ["get", "missing", "put"])
def test_damage_that_shows_only_later_is_met_by_every_call(path, first):
    path.write_bytes(damage("noise in the second half", filled(path)))
    store = Store(path)
    assert not list(path.parent.glob("*.broken*"))
    calls = {
        "get": lambda: store.get(KEYS) == {},
        "missing": lambda: store.missing(KEYS) == KEYS,
        "put": lambda: store.put(VALUES) is None,
    }
    assert calls[first]()
    store.put(VALUES)
    assert store.get(KEYS) == VALUES


def test_a_file_that_another_process_renewed_is_not_set_aside_again(path):
    path.write_bytes(damage("noise in the second half", filled(path)))
    one, two = Store(path), Store(path)  # neither has read the damaged part yet
    assert not list(path.parent.glob("*.broken*"))
    one.put(VALUES)
    assert two.get(KEYS) == VALUES
    assert one.get(KEYS) == VALUES


def test_a_busy_file_is_not_taken_for_a_damaged_one(path, monkeypatch):
    filled(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("PRAGMA journal_mode=DELETE")
    other.execute("BEGIN EXCLUSIVE")
    monkeypatch.setattr("symbal_hf.core.store.PATIENCE", 0.05)  # seconds, which a person would wait for longer
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        Store(path)
    other.execute("ROLLBACK")
    assert Store(path).get(KEYS) == VALUES
    assert not list(path.parent.glob("*.broken*"))


@pytest.mark.parametrize("delay", [0.0, 0.03, 0.1])
def test_a_writer_killed_in_the_middle_leaves_what_it_had_finished(path, delay):
    code = """
store = Store(sys.argv[1])
store.put({key("first"): b"1"})

def slowly():
    for i in range(10**9):
        if i == 2000:
            print("half", flush=True)
        yield key("big", str(i)), b"x" * 2000

class Endless(dict):
    def items(self):
        return slowly()

store.put(Endless())
"""
    path.parent.mkdir()
    writer = start(code, path)
    assert writer.stdout.readline() == "half\n"
    time.sleep(delay)
    writer.send_signal(signal.SIGKILL)
    writer.communicate()
    assert writer.returncode == -signal.SIGKILL
    store = Store(path)
    assert store.get([key("first"), key("big", "0"), key("big", "1999")]) == {key("first"): b"1"}
    store.put({key("big", "0"): b"again"})
    assert store.missing([key("first"), key("big", "0")]) == []
    assert not list(path.parent.glob("*.broken*"))


OPEN = """
import sys, time
from symbal_hf.core.store import Store
time.sleep(max(0, float(sys.argv[2]) - time.time()))
store = Store(sys.argv[1])
store.put({sys.argv[3].encode(): b"v"}, kind="text")
"""


def test_many_may_open_a_new_store_at_the_same_moment(tmp_path):
    for turn in range(4):
        path, start = tmp_path / f"{turn}.sqlite", time.time() + 1.5
        opening = [
            subprocess.Popen([sys.executable, "-c", OPEN, path, str(start), str(n)], stderr=subprocess.PIPE, text=True)
            for n in range(6)
        ]
        for process in opening:
            _, err = process.communicate(timeout=120)
            assert process.returncode == 0, err
        assert len(Store(path).get([str(n).encode() for n in range(6)])) == 6
