"""What a person reads of a result: the page and the map of facts."""
