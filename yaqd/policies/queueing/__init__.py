"""Queues at worker nodes: bounded, placed by wait time, ordered by remaining work, guarded against starvation.

After Yaq (Rasley et al., "Efficient queue management for cluster scheduling", EuroSys 2016). Everything here is a pure
function of what it is given; the ResourceManager, the NodeManagers and the simulator share it.
"""
