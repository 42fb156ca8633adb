"""What is to be done with each row that findings are about, told as the rows come by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from symbal_hf.core.errors import BadData
from symbal_hf.data.formats.conversations import caption_of
from symbal_hf.data.formats.conversations import with_caption as with_core
from symbal_hf.data.formats.protocol import ERRORS, FLAG, Edit
from symbal_hf.language.cutting import without_sentences
from symbal_hf.language.sentences import sentences
from symbal_hf.results.repaired import ACTIONS, Change, Counts, Policy, RowError


@dataclass(frozen=True)
class Rewrite:
    """What a chat model made of a caption: the new one, or why it is not taken; and whether a scorer looked at it."""

    text: str | None
    reason: str | None = None
    checked: bool = True


@dataclass
class Plan:
    """What a repair does, and the account of what it has done."""

    policy: Policy  # as for `symbal_hf.repair`
    wrong: Mapping[int, tuple[RowError, ...]]  # what is wrong in each row, by the row's number in the source
    ids: Mapping[int, str]  # of these rows
    captions: Mapping[int, str]  # of these rows, as the audit read them
    audited: Collection[int]  # numbers of the rows that the audit looked at
    column: str  # of captions or conversations (`chat`)
    chat: bool
    record: Callable[[Change], object]  # takes each `Change` as it is made
    rewrites: Mapping[int, Rewrite] = field(default_factory=dict)  # by number, with the policy "rewrite"
    count: Counter[str] = field(default_factory=Counter)

    @property
    def flags(self) -> bool:
        """Whether every row gets the columns of the policy "flag"."""
        return self.policy == "flag"

    def flag_of(self, number: int) -> dict[str, Any]:
        """The added columns: None where the audit knows nothing of the row."""
        if number not in self.audited:
            return {FLAG: None, ERRORS: None}
        errors = [{**asdict(e), "sentences": list(e.sentences)} for e in self.wrong.get(number, ())]
        return {FLAG: bool(errors), ERRORS: errors}

    def passes(self, rows: int) -> None:
        """Count rows that come by, whatever becomes of them."""
        self.count["rows"] += rows

    def edit(self, number: int, texts: Sequence[str]) -> Edit:
        """What becomes of row `number`, whose caption stands in these texts; asked once for each row of `wrong`.

        Raises `BadData`: the row says something else than when it was audited.
        """
        errors, before = self.wrong[number], self.captions[number]
        if not texts:
            raise BadData(
                f"row {self.ids[number]} has no caption in the source (column {self.column!r}); where the joined table "
                "has them, audit that table and join the other."
            )
        if caption_of(texts, chat=self.chat) != before:
            raise BadData(
                f"row {self.ids[number]} has another caption than a moment ago; leave the source alone while it is "
                "repaired."
            )
        change, new, extra = self._decide(number, errors, tuple(texts))
        for name in (ACTIONS[change.action], *extra):
            self.count[name] += 1
        self.record(replace(change, before=before))
        return Edit(keep=change.after is not None, texts=new)

    def _decide(
        self, number: int, errors: tuple[RowError, ...], texts: tuple[str, ...]
    ) -> tuple[Change, tuple[str, ...] | None, tuple[str, ...]]:
        """The change, without `before`; the new texts; and further counts."""
        change = Change(self.ids[number], errors, "", self.captions[number], "flagged")
        if self.policy == "flag":
            return change, None, ()
        if self.policy == "drop-row":
            return replace(change, action="row dropped", after=None), None, ()
        rewrite, extra = self.rewrites.get(number), tuple[str, ...]()
        if self.policy == "rewrite" and rewrite is not None:
            if rewrite.text is not None:
                new = with_caption(texts, rewrite.text)
                extra = () if rewrite.checked else ("unchecked",)
                return replace(change, action="rewritten", after=rewrite.text, reason=rewrite.reason), new, extra
            change, extra = replace(change, reason=f"not rewritten: {rewrite.reason}"), ("rewrite_refused",)
        left = dropped(texts, {s for error in errors for s in error.sentences})
        if left is None:
            why = "a wrong sentence does not stand in the caption by itself, or what is left would say something else"
            why = f"{change.reason}; {why}" if change.reason else why
            return replace(change, action="not found", reason=why), None, extra
        after = caption_of(left, chat=self.chat)
        if not sentences(after):
            return replace(change, action="emptied", after=None), None, extra
        return replace(change, action="sentences dropped", after=after), left, extra

    def counts(self) -> Counts:
        """The account; raises `BadData` where a row of `wrong` has not come by."""
        done = {name: self.count[name] for name in ACTIONS.values()}
        if sum(done.values()) != len(self.wrong):
            raise BadData(
                f"{len(self.wrong) - sum(done.values())} of {len(self.wrong)} rows were not met again in the source; "
                "leave it alone while it is repaired."
            )
        rows = self.count["rows"]
        done |= {name: self.count[name] for name in ("rewrite_refused", "unchecked")}
        return Counts(rows=rows, **done, untouched=rows - len(self.wrong), not_audited=rows - len(self.audited))


def dropped(texts: Sequence[str], wrong: set[str]) -> tuple[str, ...] | None:
    """The texts without the sentences `wrong`, wherever they stand; None where one is not found in any of them."""
    found, out = set[str](), []
    for text in texts:
        here = wrong & set(sentences(text))
        found |= here
        left = without_sentences(text, here)
        if left is None:
            return None
        out.append(left)
    return tuple(out) if found == wrong else None


def with_caption(texts: Sequence[str], caption: str) -> tuple[str, ...]:
    """The texts with another caption in the first that says something; what the others said is in it."""
    first = next((n for n, text in enumerate(texts) if with_core(text, "") != text), 0)
    return tuple(with_core(text, caption if n == first else "") for n, text in enumerate(texts))
