"""Tiny models that the tests of chat models share; each is made once, and nobody changes it."""

from __future__ import annotations

import pytest
from tiny_captioners import ASKED, WORDLESS
from tiny_chat import KINDS


class Folders(dict):
    """A folder of each kind of model, made when it is first asked for."""

    def __init__(self, root):
        self.root, self.makers = root, KINDS | ASKED | WORDLESS

    def __missing__(self, kind):
        self[kind] = self.makers[kind](self.root / kind)
        return self[kind]


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    return Folders(tmp_path_factory.mktemp("chat"))
