"""Rows with true captions and known objects: the ground that errors are planted in."""
