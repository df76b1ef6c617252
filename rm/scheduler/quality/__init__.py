"""Cores for training jobs: what they report is kept here, and every epoch their cores are divided by what they buy."""
