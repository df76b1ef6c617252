"""Queues at the nodes: what nodes report of them, what they are told, and how long tasks run."""
