"""What the ResourceManager reads from its configuration."""
