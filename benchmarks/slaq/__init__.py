"""Benchmarks of the cores of training jobs."""
