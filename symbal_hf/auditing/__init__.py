"""The audit: evidence, judges, pairs, verdict."""
