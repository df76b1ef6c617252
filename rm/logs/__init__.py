"""Aggregated logs: how far they are, and when they go."""
