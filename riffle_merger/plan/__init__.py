"""What a job decides about merging its map outputs, without I/O: events in, decisions out. `scheduler` is the entry."""
