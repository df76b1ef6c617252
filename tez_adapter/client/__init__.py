"""Whoever submits, follows or runs a job: checks, staging, the ResourceManager as a client sees it."""
