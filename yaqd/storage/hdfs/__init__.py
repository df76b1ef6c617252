"""HDFS: clients, and what they do about nodes that are dead, slow or away."""
