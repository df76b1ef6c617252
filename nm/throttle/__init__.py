"""Processor time of applications on this node: what they use is counted, and held to the cores that they were given."""
