"""The words by which chest reports name the five diseases and five devices, and whatever else a chest film shows.

All patterns are for lower-case text with single spaces; a gap between words never crosses a punctuation mark.
"""

from __future__ import annotations

import re

DISEASES = ("cardiomegaly", "pneumothorax", "atelectasis", "pleural effusion", "edema")
DEVICES = ("pacemaker", "chest tube", "endotracheal tube", "surgical clips", "sternotomy wires")
CONCEPTS = DISEASES + DEVICES

HEART = r"\b(?:heart(?! failure| block| disease)|cardiac (?:size|silhouette|shadow|contours?|outline))"
# Words between "heart" and "enlarged" that do not change the subject.
_GAP = (
    r"(?: (?!normal|aort|mediastin|lung|pulmon|hil|vasc|arter|atri|ventric|with|but\b|due\b|limits?\b|upper\b|top\b)"
    r"[\w'-]+){0,8}?"
)

# What names the concept itself.
NAMED = {
    "cardiomegaly": (
        r"\bcardio-?megal(?:y|ies)\b",
        rf"\benlarge(?:d|ment of)(?: the)?(?: [\w-]+)?? {HEART}",
        r"\b(?:heart|cardiac) (?:silhouette )?enlargement\b",
        rf"{HEART}{_GAP} (?:enlarged|large|enlargement)\b",
    ),
    "pneumothorax": (r"\b(?:hydro|ha?emo|pyo)?-?pneumo-?thora(?:x|ces|xes)\b", r"\bptx\b"),
    "atelectasis": (
        r"\batelecta(?:sis|ses|tic)\b",
        r"\b(?:lung|lobe|lobar|lingular|segmental) collapse\b",
        # Vertebrae collapse as well: only a collapse of lung counts.
        r"\bcollapse of (?:[\w-]+ ){0,7}?(?:lungs?|lobes?|lingula)\b",
        r"\bcollapsed (?:[\w-]+ ){0,3}?(?:lungs?|lobes?)\b",
    ),
    "pleural effusion": (
        r"\b(?:pleural )?effusions?\b",
        r"\bpleural (?:fluid|effusions?)\b",
        r"\b(?:hydro|ha?emo)-?(?:pneumo-?)?thora(?:x|ces)\b",
    ),
    "edema": (r"\b(?:(?:interstitial|alveolar|airspace|pulmonary|vascular) )*o?edema(?:s|tous)?\b",),
    # Reports mix up pacemakers and defibrillators; on the film both are a can with leads to the heart.
    "pacemaker": (
        r"\bpace-?makers?\b",
        r"\bpacers?\b",
        r"\b(?:cardiac )?pacing (?:device|system|leads?|wires?|electrodes?|catheters?)\b",
        r"\b(?:aicds?|icds?|cieds?|crt-?d|biv-?icd)\b",
        r"\b(?:cardioverter[ -]*)?defibrillators?\b",
        r"\b(?:cardiac|pulse|pacer)(?: xxxx| ___)? generators?\b",
    ),
    # A pigtail catheter on a chest film is a small chest tube unless it is said to drain something else.
    "chest tube": (
        r"\bchest (?:tubes?|drains?)\b",
        r"\b(?:tube )?thoracostom(?:y|ies)\b",
        r"\bpleural (?:drainage )?(?:catheters?|drains?|tubes?|pigtails?)\b",
        r"\bpig-?tails?\b",
        r"\bpleurx\b",
        r"\bintercostal drains?\b",
    ),
    "endotracheal tube": (
        r"\b(?:endo|oro|naso)-?tracheal(?! (?:lesion|mass|secretion|tumou?r|mucus))(?: (?:tubes?|intubation))?\b",
        r"\bet[ -]?tubes?\b",
        r"\betts?\b",
        r"\b(?:re-?)?intubat(?:ed|ion)\b",
    ),
    "surgical clips": (r"\b(?:hemo-?)?clips?\b",),
    # The wires stay for life: a report that tells of a sternotomy tells of wires, and de-identification (XXXX) often
    # hides the word itself.
    "sternotomy wires": (
        r"\bsternotom(?:y|ies)(?: (?:wires?|sutures?))?\b",
        r"\bsternal (?:wires?|sutures?|cerclage)\b",
        r"\bcerclage wires?\b",
    ),
}

# What is not the concept but goes with it: enough not to claim its absence, too little to claim its presence.
NEAR = {
    "cardiomegaly": (
        rf"{HEART}(?: [\w'-]+){{0,6}}? (?:upper(?: \w+){{0,2}} limits?|top|limits? of normal|borderline|prominent)\b",
        rf"\b(?:borderline|prominent|top normal|upper normal)(?: [\w-]+)?? {HEART}",
        r"\b(?:enlarge(?:d|ment of)(?: the)?|prominent|widened) cardio-?mediastinal\b",
        r"\bcardio-?mediastinal (?:silhouette|contours?)(?: [\w-]+){0,5}? (?:enlarged|prominent|borderline)\b",
        r"\bincrease(?:d|s)?(?: in)?(?: the)? (?:heart|cardiac) size\b",
        rf"{HEART}(?: [\w'-]+){{0,3}}? increased\b",
        r"\b(?:atrial|ventricular|biatrial|chamber) (?:enlargement|dilatation)\b",
    ),
    "pneumothorax": (r"\bpleural(?: or)? (?:air|gas)\b",),
    "atelectasis": (r"\bvolume loss\b", r"\bloss of (?:lung )?volume\b"),
    "pleural effusion": (
        r"\bblunt(?:ed|ing)\b",
        r"\bempyema\b",
        r"\bfissural fluid\b",
        r"\bfluid in the \w+ fissure\b",
    ),
    "edema": (
        r"\b(?:vascular|pulmonary|venous|hilar|interstitial) congesti(?:on|ve)\b",
        r"\b(?:heart|cardiac|ventricular|congestive|early|overt) failure\b",
        r"\bchf\b",
        r"\b(?:fluid|volume) overload\b",
        r"\b(?:vascular|venous) (?:redistribution|prominence)\b",
        r"\b(?:cephali[sz]ation|kerley|peribronchial cuffing)\b",
        r"\bcardiac decompensation\b",
    ),
}

# What states the opposite in words of its own.
OPPOSITE = {
    "cardiomegaly": (
        rf"{HEART}(?:(?!enlarg|large|limits? of|upper|top|borderline|prominent|\b(?:with|but|not)\b)[^.;:]){{0,90}}?"
        r"\b(?:normal|unremarkable|within (?:the )?(?:normal )?limits)\b",
        r"\b(?:normal|unremarkable|non-?enlarged)(?: in)?(?: [\w-]+){0,4}? (?:heart|cardiac|cardiomediastinal)\b",
    ),
    "endotracheal tube": (r"\bextubat(?:ed|ion)\b",),
}

# What only sounds like one of them.
OTHER = re.compile(
    r"\b(?:pericardial|joint|knee|elbow|glenohumeral|middle ear) effusions?\b"
    r"|\b(?:subglottic|laryngeal|soft[ -]tissue|subcutaneous|chest wall|body wall|peripheral|prevertebral|pedal|marrow"
    r"|cerebral|airway|mucosal) o?edema\b"
    r"|\b(?:external|transcutaneous) (?:pac\w+|defibrillators?)(?: (?:pads?|leads?))?\b"
    r"|\b(?:pac(?:er|ing|emaker)|defibrillat(?:or|ion)) (?:pads?|paddles?)\b"
    r"|\b(?:temporary|epicardial)(?: [\w-]+)?? (?:pac\w+|leads?|wires?)(?: (?:leads?|wires?))?\b"
    r"|\b(?:pericardial|biliary|hepatic|abdominal|nephrostomy|cholecystostomy|ureteral|mediastinal)(?: \w+)??"
    r" pig-?tails?\b"
    r"|\bpig-?tails? (?:nephrostomy|biliary|ureteral)\b"
    r"|\bmitra-?clips?\b|\bmitral(?: valve)? clips?\b|\b(?:hair|paper|ekg|ecg) ?clips?\b"
)

_FINDINGS = """
opacit opacif consolidat infiltrat pneumoni nodul mass(?:es)?\\b lesion granulom calcif emphysem copd hyperinflat
hyperexpan hypoinflat hypoventilat inflat aerat scar fibros fibrotic thicken fractur scolio kypho osteophyt degenerat
spondyl osteopeni osteoporo arthr hernia tortuo ecta[ts] aneurysm dissect congest vascularity markings lucen densit
volumes? infection aspiration hemorrhag bronchi interstiti airspace air.space cavit cyst bleb bulla metasta tumou?r
cancer malignan adenopathy lymphad elevat eventrat deviat shift widen enlarg promin effus edema atelect pneumothora
pneumomediast pneumoperit cardiomegal collaps blunt fluid empyema failure crowding reticul honeycomb sarcoid tubercul
contusion dislocat deform sclero atheroscl foreign.body bullet asthma bronchiect abscess chf cephali normal clear
lordo sublux wedg compress nipple histoplasm cholelith postsurg post.surg surg(?:ery|ical) resect lobectom mastectom
pneumonectom cabg
"""
_DEVICES = """
tubes? catheter lines? picc port pacemaker pacer icd aicd defibrill generator leads? wires? clips? sternotom stents?
valves? prosthe hardware drain pigtail clip staple suture screw plates? implant balloon pump swan impella ett intubat
monitor electrode stimulator neurostim graft
"""
_ANATOMY = """
heart cardiac cardio mediastin lungs? lobes? lobar lingula bases? basilar bibas basal perihil hilar hil(?:um|a)\\b
pleura costophren sulcus diaphragm hemidiaphragm ribs? spine vertebra thora(?:x|c) chest aort vascula vessel vein arter
trachea carina airway bony bones? osseous skelet clavic shoulder humer scapul sternum apex apic apices fissure stomach
abdom bowel liver spleen neck esophag pulmonary parenchym soft.tissue silhouette retrocard atri ventric subclavian
svc cava\\b
"""
FINDINGS = re.compile(rf"\b(?:{'|'.join(_FINDINGS.split())})")
# What a sentence that states one disease alone does not speak of.
_ASIDE = "mediastin cardiomediastin aort unfold hypertens strand pneumatocele"
EXTRAS = re.compile(rf"\b(?:{'|'.join((*_FINDINGS.split(), *_DEVICES.split(), *_ASIDE.split()))})|:")
TERMS = re.compile(
    r"\b(?!chest (?:x|radio|film|ct|pa|view))"
    rf"(?:{'|'.join((*_FINDINGS.split(), *_DEVICES.split(), *_ANATOMY.split()))})"
)
HEADING = re.compile(
    r"(?:(?:the|left|right|bilateral|two|2|views?|of|pa|ap|and|lateral) )*(?:chest|abdomen|shoulders?|ribs?)[.:]*"
)
ADVICE = re.compile(r"\b(?:recommend|correlat|advis|suggested for|follow-?up)")
