"""Training of the network that decides on stages."""
