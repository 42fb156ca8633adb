"""Spaces arrive on the Hub whole, with a card that it takes, by the command that a person runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hub import LoopbackHub

from symbal_hf.core.errors import BadData
from symbal_hf.huggingface.publish import check_repo, is_repo, publish_space

SYMBAL = Path(sys.executable).with_name("symbal")
CARD = b"---\ntitle: A page\nsdk: gradio\nlicense: apache-2.0\n---\n# A page\n"

SEND = """
from symbal_hf.huggingface.publish import publish_space
from symbal_hf.data.opening import BadData
try:
    print(publish_space("lab/page", {"README.md": sys.argv[1].encode(), "app.py": b"1"}, message="A page"))
except BadData as error:
    print(error)
"""


def symbal(hub, home, *args):
    env = {**hub.env(home), "HF_HUB_OFFLINE": "0", "PATH": os.environ["PATH"]}
    return subprocess.run([SYMBAL, *args], env=env, capture_output=True, text=True)


def test_the_leaderboard_arrives_whole(tmp_path):
    folder = Path(__file__).parents[2] / "hub_cards" / "leaderboard"
    with LoopbackHub() as hub:
        done = symbal(hub, tmp_path, "leaderboard", "publish", "--repo", "lab/board")
        assert done.returncode == 0, done.stderr
        assert "SYMBAL_SUBMISSIONS" in done.stdout and hub.url in done.stdout
        there = hub.files("lab/board", kind="space")
        own = {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}
        assert there == own and "app.py" in there
        assert "POST /api/validate-yaml" in hub.requests and hub.unknown == []
        before = hub.repos["space", "lab/board"].at("main").sha
        again = symbal(hub, tmp_path, "leaderboard", "publish", "--repo", "lab/board")
        assert again.returncode == 0 and hub.repos["space", "lab/board"].at("main").sha == before
        bad = symbal(hub, tmp_path, "leaderboard", "publish", "--repo", "board")
        assert bad.returncode == 2 and "'board' is no Hub repo" in bad.stderr


def test_a_card_that_the_hub_does_not_take_stops_everything(tmp_path):
    with LoopbackHub() as hub:
        said = hub.run(SEND, tmp_path, CARD.replace(b"apache-2.0", b"Apache License!").decode())
        assert said.startswith("lab/page was not published: ") and "license" in said
        assert hub.files("lab/page", kind="space") == {}
        assert hub.run(SEND, tmp_path, CARD.decode()).startswith(hub.url)


@pytest.mark.parametrize("name", ["", "board", "a/b/c", "lab/", "/board", "lab/a b", "lab/..", "-lab/x"])
def test_a_name_that_is_none_is_refused_before_anything_is_asked(name):
    assert not is_repo(name)
    for call in (check_repo, lambda repo: publish_space(repo, {"README.md": CARD}, message="A page")):
        with pytest.raises(BadData, match="is no Hub repo; give namespace/name"):
            call(name)
