"""The formats that rows come in, each read and written in one place."""
