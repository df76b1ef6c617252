"""How training programs join an exploration: four styles, one channel."""
