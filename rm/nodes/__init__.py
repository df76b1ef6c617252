"""Nodes: registration, heartbeats, loss, drains, and what the site says of hosts."""
