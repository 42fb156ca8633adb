"""Methods measured over benchmarks whose errors are known."""
