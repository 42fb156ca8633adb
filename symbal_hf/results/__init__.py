"""What an audit and what follows it have found, as plain values that are written and read."""
