"""Jobs that are graphs of stages: what a `Flow` becomes before it runs, and what its tasks do."""
