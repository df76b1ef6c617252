"""The ResourceManager's web port: Hadoop's REST answers, plain pages, and the proxy to applications' own pages."""
