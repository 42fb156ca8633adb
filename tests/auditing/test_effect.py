"""An option that could have no effect is refused in one sentence, and one that says what holds anyway is not."""

from __future__ import annotations

from pathlib import Path

import pytest

import symbal_hf
from symbal_hf.core.errors import BadData

ROWS = [
    {"id": i, "caption": "A dog on a sofa.", "objects": ["dog", "sofa"], "references": ["A dog lies on a couch."]}
    for i in range(12)
]
PAPER = "method='paper'"
PROMPTS = str(Path(symbal_hf.__file__).parent / "models" / "chat" / "prompts")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"members": 9}, PAPER),
        ({"summarizer": "text-only:hf:x"}, PAPER),
        ({"summarizer_2": "text-only:hf:x"}, PAPER),
        ({"scorer_2": "reference"}, PAPER),
        ({"text_encoder": "st:some/model"}, PAPER),
        ({"method": "paper", "members": 9}, "phrases are counted"),
        ({"image_encoder": "open_clip:ViT-B-32/openai"}, "embeds no image"),
        ({"captioner": "hf:x"}, "captions are checked against references"),
        ({"scorer": "objects", "chat": "hf:x"}, "no part of this audit asks a chat model"),
        ({"prompts": PROMPTS}, "no part of this audit asks a chat model"),
        ({"concurrency": 5}, "asks a server"),
        ({"budget": "auto"}, "scorer 'objects' asks no chat model about statements"),
        ({"scorer": "reference", "budget": 50}, "scorer 'reference' asks no chat model about statements"),
        ({"device": "cuda"}, "stay on the CPU"),
        ({"dtype": "float16"}, "stay on the CPU"),
        ({"device_map": "auto"}, "stay on the CPU"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_what_nothing_reads_is_refused(options, why):
    name = next(reversed(options))
    with pytest.raises((BadData, ValueError), match=f"{name}=.* changes nothing: .*{why}"):
        symbal_hf.audit(ROWS, **options)


@pytest.mark.parametrize(
    "options",
    [
        {"text_encoder": "lite"},
        {"image_encoder": "lite"},
        {"device": "cpu"},
        {"scorer": "objects", "scorer_2": "objects"},
        {"scorer": "auto"},
        {"method": "paper", "text_encoder": "lite"},
    ],
    ids=str,
)
def test_what_holds_anyway_may_be_said(options):
    assert symbal_hf.audit(ROWS, **options).verdict == "none"


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"tau": 2}, r"tau=2; it must be in \[0, 1\]"),
        ({"alpha": 0}, r"alpha=0; it must be in \(0, 1\)"),
        ({"top_k": 0}, "top_k=0; it must be >= 1"),
        ({"limit": -1}, "limit=-1; it must be >= 1"),
        ({"concurrency": -5}, "concurrency=-5; it must be >= 1"),
        ({"members": -3}, "members=-3; it must be >= 1"),
        ({"budget": 0}, "budget=0; it must be a number >= 1 of questions, or 'auto'"),
        ({"budget": "little"}, "budget='little'; it must be a number >= 1 of questions, or 'auto'"),
        ({"on_bad_row": "ignore"}, "on_bad_row='ignore'; available: 'error', 'warn', 'skip'"),
        ({"method": "guess"}, "no method 'guess'"),
    ],
    ids=str,
)
def test_a_value_outside_its_range_is_named_with_the_range(options, complaint):
    with pytest.raises(ValueError, match=complaint):
        symbal_hf.audit(ROWS, **options)


def test_an_option_that_is_not_there_is_told_with_the_nearest_name():
    with pytest.raises(TypeError, match="no option 'limits'; did you mean limit"):
        symbal_hf.audit(ROWS, limits=3)
