"""Which stage of which job gets the next container, in leaf queues whose ordering policy is `clotho`."""
