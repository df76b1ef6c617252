"""Where queues at nodes begin to pay: how many nodes, with which tasks, keep a ResourceManager so busy."""
