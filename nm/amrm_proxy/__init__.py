"""A proxy of the scheduler's protocol at the node: masters that run here talk to it instead of the ResourceManager.

Hadoop's AMRMProxy and distributed scheduling: the master's own token never leaves the NodeManager, and its
opportunistic containers are chosen here, without waiting for the ResourceManager.
"""
