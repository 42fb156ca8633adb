"""Acc@K as a metric of the `evaluate` library; all but this file is what its Space on the Hub holds."""
