"""Which stage of which job gets the next container, and how many containers a job should have."""
