"""Judges: each says how probable it is that each image shows each concept, from what it looks at."""
