"""The job manager's process: its decisions carried out, its calls to nodes and the ResourceManager, its services."""
