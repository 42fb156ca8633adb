"""What sentences of radiology reports assert."""
