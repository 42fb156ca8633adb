"""Models by name: compositions, encoders, chat models, scorers, summarizers."""
