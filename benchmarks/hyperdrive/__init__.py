"""Benchmarks of the exploration of hyperparameters."""
