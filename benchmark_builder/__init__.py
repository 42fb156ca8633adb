"""Builds benchmark data: images, their captions and the errors planted in them."""
