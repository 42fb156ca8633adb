"""Templates of what accompanies our work on the Hub: cards and registrations."""
