"""Which sentences of audited captions name the textual error of a finding, told as the audit itself told it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from symbal_hf.language.concepts import Concepts
from symbal_hf.language.denials import asserted
from symbal_hf.language.phrases import Vocabulary, noun_phrases
from symbal_hf.results.findings import Finding


def facts_naming(finding: Finding, concepts: Concepts) -> NDArray[np.bool_]:
    """(F,) The fact names t.

    An audit may call t by a fuller name than the one that it counted ("tennis racket" for "racket"). So of t and of the
    finding's candidates whose words are among t's, that name counts by which all affected sentences name t.

    Args:
        finding: of an audit of these captions.
        concepts: of their facts, found as the audit found them (`symbal_hf.auditing.evidence.concepts_of`).
    """
    words = set(finding.textual_error.split())
    shorter = [name for name in finding.textual_error_candidates if set(name.split()) < words]
    names = [finding.textual_error, *sorted(shorter, key=lambda name: -len(name.split()))]
    affected = {sentence for row in finding.affected for sentence in row.sentences}
    fewest, best = len(affected) + 1, np.zeros(len(concepts.facts), bool)
    for name in names:
        facts = _naming(name, concepts)
        missed = len(affected - {concepts.facts.text[int(fact)] for fact in np.flatnonzero(facts)})
        if missed < fewest:
            fewest, best = missed, facts
        if not missed:
            break
    return best


def _naming(name: str, concepts: Concepts) -> NDArray[np.bool_]:
    out = np.zeros(len(concepts.facts), bool)
    if name in concepts.names:
        out[concepts.facts_naming(concepts.names.index(name))] = True
        return out
    # Rare in these captions, or a language model's own words: no concept that was found by itself.
    plain = Vocabulary({name: ()})
    for fact, text in enumerate(concepts.facts.text):
        said = asserted(text)
        out[fact] = name in noun_phrases(said) or (" " in name and bool(plain.find(said)))
    return out
