"""Workloads for the simulator: drawn from published statistics, read from traces, or taken from recorded history."""

from yaqd.sim.workloads.drawn import WORKLOADS, Arrivals, Drawn, WorkloadError, draw
from yaqd.sim.workloads.files import read_workload

__all__ = ["WORKLOADS", "Arrivals", "Drawn", "WorkloadError", "draw", "read_workload"]
