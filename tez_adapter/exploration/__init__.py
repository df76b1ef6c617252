"""Explorations of hyperparameters: trials, what proposes them, how programs join, and a run without a cluster."""
