"""The application master that tests and benchmarks share."""

from benchmarks.unmanaged_master import UnmanagedMaster, await_value

__all__ = ["UnmanagedMaster", "await_value"]
