"""Thousands of simulated nodes whose tasks take a second, over real RPC: what a ResourceManager's time is worth."""
