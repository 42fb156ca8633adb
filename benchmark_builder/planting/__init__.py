"""Which errors are planted, how many, where, and in which words."""
