"""What outlives the process: the state store and records."""
