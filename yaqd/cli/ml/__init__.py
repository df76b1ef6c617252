"""`yaq ml`: models that are trained on a cluster, or here."""
