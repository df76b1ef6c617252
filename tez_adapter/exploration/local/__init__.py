"""An exploration on this machine, without a cluster: the same policies, generators and joins."""
