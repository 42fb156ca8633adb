"""The words by which a chest report denies or doubts something, and the words at which that ends.

All patterns are for lower-case text with single spaces.
"""

from __future__ import annotations

import re

_SEEN = (
    r"(?:seen|identified|visuali[sz]ed|present|evident|appreciated|demonstrated|detected|apparent|noted|visible|found"
    r"|observed|recogni[sz]ed|confirmed|shown|there)"
)
_BE = r"(?:(?:is|are|was|were|has|have|had|been|be|being|appears?|now|since|remains?) )"
_HOW = r"(?:(?:any|definitely|clearly|well|currently|been|be|otherwise|readily|convincingly|definite|again|also) )"
_LITTLE = (
    r"(?:(?:any|significant(?:ly)?|substantial(?:ly)?|appreciabl[ey]|interval|definite|major|marked(?:ly)?|relevant"
    r"|obvious|other|great|much|real|clear|overall|been|yet|acute|evidence of) )"
)
_CANNOT = r"(?:cannot|can't|can not|could not|not|difficult to|hard to)"

# In order of precedence where two begin at one place. "_before" cues speak of what stands before them.
_CUES = {
    # The words of a cue, but nothing is denied: "no change in", "not only", "partial resolution of".
    "nothing": (
        rf"\b(?:no|not|without|nor) {_LITTLE}*(?:changes?|changed|differences?|different|increase[ds]?|decrease[ds]?"
        r"|improvement|improved|progression|progressed|worsening|worsened|resolution|resolved|removal|removed|only"
        r"|necessarily|(?:fully|completely|entirely) resolved)\b",
        r"\b(?:partial(?:ly)?|incomplete(?:ly)?|slight(?:ly)?|some) (?:interval )?"
        r"(?:resolution|resolved|clearing|cleared|removal|removed)\b",
    ),
    "unsure_before": (
        rf"\b{_CANNOT}(?: be)?(?: \w+)? (?:excluded?|ruled? out|assessed|evaluated?|determined)(?=[.;:]?$|[.;:] )",
        r"\bnot (?:\w+ )?(?:excluded|ruled out)\b",
        r"\b(?:cannot|can not|could not) be (?:\w+ )?(?:excluded|ruled out|assessed)",
        r"\b(?:is|are|be|remains?|was|were) (?:(?:also|not|less|more|most) )?(?:possible|possibilit\w+|suspected"
        r"|questioned|questionable|(?:un)?likely|probable|considered|favou?red|equivocal)\b"
        r"(?! (?:due|secondary|represent|a|an|related)\b)",
        r"\b(?:suspected|possible|questioned|questionable|unlikely|likely|probable)(?=[.;]?$)",
        r"\b(?:may|might|could) (?:also )?be (?:present|considered|obscured|missed|hidden)\b",
        r"\b(?:may|might|probably|likely|nearly|almost|largely|near)(?: \w+){0,2} (?:resolved|cleared)\b",
    ),
    "absent_before": (
        rf"{_BE}*(?:not|no longer) {_HOW}*{_SEEN}\b",
        rf"{_BE}+(?:(?:completely|subsequently|interval|all) )?(?:resolved|cleared|disappeared|removed|withdrawn|absent"
        r"|ruled out|excluded|negative)\b",
        r"(?<!^)(?<!, )(?<!with )(?<!interval )\b(?:resolved|removed)\b",
        r"\b(?:removal|resolution)\b(?! of)",
    ),
    "unsure": (
        r"\b(?:may|might|could|possib(?:le|ly|ility|ilities)|probab(?:le|ly)|(?:un)?likely|perhaps|presum(?:ed|ably)"
        r"|question(?:ed|able)?|suspect(?:ed)?|suspicions?|suspicious|suggest(?:s|ed|ing|ive|ion)?|concern(?:s|ing)?"
        r"|worrisome|equivocal|borderline|favou?r(?:ed|s)?|differential|consider(?:ed|ations?)?|potential(?:ly)?"
        r"|if|whether|risk of|rule out|with or without|evaluat(?:e|ion) (?:for|of)|assess(?:ment)? (?:for|of))\b",
        rf"\b(?:{_CANNOT}|to) (?:\w+ )?(?:exclude|rule out)\b",
        r"\b(?:near(?:ly)?|almost|largely)[ -](?:complete )?(?:resolution|clearing) of\b",
        r"\?",
    ),
    "absent": (
        r"\b(?:no|not|none|without|negative|free of|free from|clear of|absence of|absent|lack of|lacks?|denies|neither"
        r"|nor|never|rather than|instead of|resolved|removed|\w+n't|fails? to)\b",
        r"\b(?:resolution|clearing|disappearance|removal|withdrawal|exclusion) of\b",
    ),
}
CUES = re.compile("|".join(f"(?P<{kind}>{'|'.join(patterns)})" for kind, patterns in _CUES.items()))

# What opens a new assertion after a denied list: "no effusion, mild cardiomegaly", "no edema and stable nodules".
_ASSERTS = (
    r"(?:there (?:is|are|has)|this|these|it|the|an?|heart|cardiac|lungs|mild(?:ly)?|moderate(?:ly)?|small|tiny|trace"
    r"|minimal|stable|unchanged|persistent|severe|worsening|worsened|improv\w+|increas\w+|decreas\w+|again|is|are|has"
    r"|have|now|borderline|low|patchy|new|interval|status post)\b"
)
_WITH = r"(?<!compatible)(?<!consistent)(?<!associated)(?<!along)(?<!correlation) with\b(?! or without)"
_BUT = r"[;:]|\. |\b(?:but|however|although|though|except|otherwise)\b"

# Where the scope of a cue ends. "No pneumothorax, large effusion or mass" is one list up to its "or".
CLAUSE_END = re.compile(
    rf"{_BUT}|\b(?:despite|in spite of|apart from|aside from|other than|yet|while|whereas|which|placement|insertion"
    r"|following|after|status post)\b"
    rf"|{_WITH}|\b{_SEEN}(?:,| and\b)|,(?= (?:and )?{_ASSERTS})(?![^;]*\b(?:or|nor)\b)| and (?={_ASSERTS})"
)
# "May represent crowding, mild edema, infiltrates": what a verb leaves open goes on over commas.
OPEN_VERBS = frozenset(("may", "might", "could", "differential"))
VERB_END = re.compile(
    rf"{_BUT}|{_WITH}|\bwhile\b|,(?= (?:and )?(?:there|this|it|the|heart|cardiac|lungs|no|with)\b)"
    r"| and (?=(?:there|is|are|has|have)\b)"
)
LIST_END = re.compile(r",(?![^;]*\b(?:or|versus|vs)\b)")

# Back to where a cue about what stands before it reaches: "are not seen" takes a list, "is not seen" its last item.
CLAUSE_START = re.compile(rf"{_BUT}|\b(?:with|without|no)\b")
ITEM_START = re.compile(rf"{CLAUSE_START.pattern}|,|\band\b")

PART = re.compile(r"[,;:]|\. | with\b| and\b")
CHOICE = re.compile(r"\b(?:or|versus|vs)\b|(?<=[a-z])(?<!xxxx) ?/ ?(?=[a-z])")
PAST = re.compile(
    r"(?<!the )(?<!to )(?<!with )(?<!on )(?<!from )\b(?:history of|hx of|prior|previous)(?: [\w-]+){0,2}? ?$"
)
