"""`yaq riffle`: mergers of map outputs, and their files."""
