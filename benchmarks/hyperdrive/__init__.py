"""Benchmarks of explorations of hyperparameters."""
