"""What captions say: sentences, facts, phrases, denials, concepts."""
