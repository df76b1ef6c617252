"""Explorations of hyperparameters in simulated time, from recorded curves."""
