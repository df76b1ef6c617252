"""`yaq sim`: policies on a simulated cluster."""
