"""Logs of containers: files on the node, pages, and their upload."""
