"""`yaq app` and `yaq explain`: what runs, what became of it, its logs, why it waits."""
