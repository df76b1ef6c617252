"""The answers to `yaq explain` and `yaq top`."""
