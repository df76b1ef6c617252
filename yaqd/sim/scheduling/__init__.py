"""What the simulator puts around the live scheduler."""
