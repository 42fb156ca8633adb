"""Detectors that ship with the package, and say where a thing is and not only whether."""
