"""The official ids of COCO's classes, for annotations as COCO writes them."""

from benchmark_builder.bases.coco_names import COCO_NAMES

# They run from 1 to 90 with gaps, in the order of the names.
UNUSED = (12, 26, 29, 30, 45, 66, 68, 69, 71, 83)
COCO_IDS = dict(zip((i for i in range(1, 91) if i not in UNUSED), COCO_NAMES, strict=True))
