"""Jobs that are graphs of stages, in simulated time: a plain simulator, and the same one compiled."""
