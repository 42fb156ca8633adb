"""How other libraries know us: the task in transformers, cards, the Hub."""
