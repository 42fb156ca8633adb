"""Encoders of texts and images, and embedding by any number of processes."""
