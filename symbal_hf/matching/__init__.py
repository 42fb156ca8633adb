"""Whether two names mean one thing."""
