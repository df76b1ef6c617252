"""Programs that the benchmarks submit: job classes and streaming scripts."""
