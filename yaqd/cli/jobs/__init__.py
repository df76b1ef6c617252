"""`yaq mr`, `yaq run` and `yaq demo`: work for a cluster."""
