"""The factorial study of switches and systems: what is run, the store of what came out, and what it says."""
