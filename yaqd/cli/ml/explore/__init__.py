"""Explorations of hyperparameters in the terminal."""
