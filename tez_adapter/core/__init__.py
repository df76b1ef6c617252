"""What a job manager decides, without I/O: events in, decisions out. `machine` is the entry."""
