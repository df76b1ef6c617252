"""Jobs that are graphs of stages, and who gets the next container."""
