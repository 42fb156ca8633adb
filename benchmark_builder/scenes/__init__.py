"""Drawn scenes whose contents are known exactly, and the grammar of their captions."""
