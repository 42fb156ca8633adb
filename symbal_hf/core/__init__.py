"""The ground that every room stands on: errors, files, the store, options; it imports nothing of ours."""
