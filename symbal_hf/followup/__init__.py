"""What is done with a finished audit: validate, compare, repair."""
