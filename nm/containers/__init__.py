"""Containers of a node: their states, their course, who starts, replaces and ends them."""
