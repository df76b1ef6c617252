"""Decide which trials of an exploration train, wait or end, from what their curves promise.

After HyperDrive and its policy POP (Rasley et al., Middleware 2017). A policy answers up-calls and keeps its own state;
a live exploration and the simulator call the same objects.
"""
