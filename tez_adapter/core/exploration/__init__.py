"""The pure machine of an exploration: trials, the slots that they run in, and the policy that it asks."""
