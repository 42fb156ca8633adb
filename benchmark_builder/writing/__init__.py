"""A benchmark on disk: parquet, numbers, figures, its card, its way to the Hub."""
