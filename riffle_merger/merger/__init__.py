"""Turning many map outputs of a node into few large files, with large sequential requests to the disk only."""
