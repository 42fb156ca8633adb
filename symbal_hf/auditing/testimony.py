"""Who says that an error is one: the judge that accuses does not also confirm.

A pair that passed every gate is *found* where the truth was given, where a witness other than the accuser confirms it,
or where the accuser rejects far more statements of t than it was measured to miss. Everything else is *suspected*: one
judge's word, told with the reason and with what would settle it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from symbal_hf.auditing.association import FEWEST_ROWS, Pair, error_share
from symbal_hf.auditing.competence import as_unspoken, missed_elsewhere, more_than_missed
from symbal_hf.auditing.evidence import Evidence
from symbal_hf.auditing.judges.second import FEWEST_AGREED, LEAST_AUC, SEES_NONE, Rows, Witness, chance_of_more

LEAST_FALSE = 0.15  # of the rejected rows, at the lower end, that a witness must hold to be false
MOST_LOOKED_AT, MOST_BESIDE = 400, 200  # rejected rows that a witness looks at, and rows beside them
MOST_AGREED = 100  # rows by which a witness shows that it sees t
SILENCE = 0.01  # of comparable statements, those which references leave out as much
LEVEL = 0.05  # at which a judge must reject more than it is known to miss


@dataclass(frozen=True)
class Testimony:
    """What is known of one accusation.

    Attributes:
        witness: who confirms it: "objects", "references", the name of a second judge, "competence"; None: nobody.
        confirmed: rejected rows that the witness holds to be false, of `rows` that it looked at; for "competence" the
            images in which the judge rejects t, of those whose captions state it.
        reason: why the pair is suspected only, and what would settle it; "" where it is found.
    """

    witness: str | None
    confirmed: int
    rows: int
    reason: str = ""


def testimony_of(evidence: Evidence, pair: Pair, name: str) -> Testimony:
    """Who confirms that `name`, the t of this pair, is stated falsely."""
    beliefs = evidence.beliefs
    if beliefs.given_truth:
        rejected = int(evidence.units.first(pair.wrong & pair.has_feature).sum())
        return Testimony("objects", rejected, rejected)
    told = None if evidence.naming is None else _by_references(evidence, pair, name)
    if (by_text := beliefs.scorer in ("reference", "text-only")) and told is not None and told.witness:
        return told
    presence, stated = beliefs.known[:, pair.error], evidence.concepts.stated(pair.error)
    for witness in (one for one in evidence.witnesses if one.knows(name)):
        neither = _some(evidence, ~stated & (presence < SEES_NONE), MOST_AGREED)
        agreed = _some(evidence, stated & evidence.shows[:, pair.error], MOST_AGREED)
        if _sees(witness, name, agreed, neither):
            return _by_witness(evidence, witness, pair, name, agreed=agreed, neither=neither)
    # Captions of the same images by others, where they are not what accuses, are a control.
    if told is not None and (told.witness or by_text):
        return told
    return _by_competence(evidence, pair, name)


def _sees(second: Witness, name: str, agreed: Rows, neither: Rows) -> bool:
    """Whether the second judge has a say here: on drawings, say, one that was taught by photos may see nothing right.

    Where captions state t and the accuser sees it too, the second judge must see more of it than where neither does.
    """
    if len(agreed) < FEWEST_AGREED or not len(neither):
        return second.by_card
    return chance_of_more(second.worth(name, agreed), second.worth(name, neither)) >= LEAST_AUC


def _by_witness(
    evidence: Evidence, second: Witness, pair: Pair, name: str, *, agreed: Rows, neither: Rows
) -> Testimony:
    rejected = _some(evidence, pair.wrong & pair.has_feature, MOST_LOOKED_AT)
    beside = _some(evidence, pair.has_feature & ~evidence.concepts.stated(pair.error), MOST_BESIDE)
    ratio = second.log_ratio(name, rejected, agreed=agreed, elsewhere=neither, beside=beside)
    confirmed = int((ratio > 0).sum())
    if error_share(0, ratio).low >= LEAST_FALSE:
        return Testimony(second.name, confirmed, len(rejected))
    reason = (
        f"{second.name} does not confirm it: it sees no {name!r} in {confirmed} of {len(rejected)} rejected rows; let "
        "a person look at 20 of them (symbal validate --human-template)"
    )
    return Testimony(None, confirmed, len(rejected), reason)


def _some(evidence: Evidence, mask: NDArray[np.bool_], most: int) -> NDArray[np.int64]:
    """Of the rows of a mask, one an image, so many at random."""
    rows = np.flatnonzero(evidence.units.first(mask))
    return rows if len(rows) <= most else np.sort(np.random.default_rng(0).choice(rows, most, replace=False))


def _by_references(evidence: Evidence, pair: Pair, name: str) -> Testimony:
    """References are no list of what is there: their silence counts as far as they are not as silent about all else."""
    rejected, told = int(evidence.units.first(pair.wrong & pair.has_feature).sum()), evidence.told
    assert told is not None
    beside = evidence.units.first(np.ones(len(told), bool)) & pair.has_feature
    stated = float(evidence.concepts.stated(pair.error)[beside].sum())
    silent = as_unspoken(evidence.spoken, pair.error, stated, float(told[beside, pair.error].sum()))
    if silent <= SILENCE and stated >= FEWEST_ROWS:
        return Testimony("references", rejected, rejected)
    reason = (
        f"references may only leave {name!r} out there: captions state it in so many more images than references do "
        f"that {silent:.0%} of what is stated as often is left out as much ({SILENCE:.0%} at most are asked for); give "
        "objects or images, or let a person look at 20 of them (symbal validate --human-template)"
    )
    return Testimony(None, 0, rejected, reason)


def _by_competence(evidence: Evidence, pair: Pair, name: str) -> Testimony:
    shown, settle = evidence.competence, "give objects or references, or let a person look at 20 of them"
    seen, stated = int(shown.seen[pair.error]), int(shown.stated[pair.error])
    where = "in none" if not seen else f"in {seen}"
    reason = f"the judge saw {name!r} {where} of the {stated} images whose captions state it, so it cannot tell"
    if shown.can_see[pair.error]:
        reason = f"the judge sees {name!r} now and then, but what it misses of it was never measured"
        if (elsewhere := missed_elsewhere(name, evidence.beliefs)) is not None:
            rejected = int(evidence.units.first(pair.wrong).sum())
            if more_than_missed(rejected, stated, elsewhere) < LEVEL:
                return Testimony("competence", rejected, stated)
            reason = (
                f"the judge rejects {rejected} of {stated} statements of {name!r}; where it was measured it missed "
                f"{elsewhere[1]} of {elsewhere[0]}, and may miss as many here"
            )
    return Testimony(None, seen, stated, f"{reason}; {settle} (symbal validate --human-template)")
