"""`yaq clotho`: train the policy of stages, measure it, look at its weights."""
