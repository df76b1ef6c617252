"""A cluster on this machine: one ResourceManager and N NodeManagers, each a process of its own, under one folder."""

from yaqd.cli.local.cluster import ClusterStatus, DaemonStatus, LocalCluster

__all__ = ["ClusterStatus", "DaemonStatus", "LocalCluster"]
