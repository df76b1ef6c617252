"""Programs for explorations of hyperparameters (`yaq ml explore`), each with its space beside it."""
