"""Hadoop's protocols as this daemon serves them, and what goes with their messages."""
