"""Bounds of the shuffle service."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ShuffleLimits:
    #: connections served at once; more are told to come back
    connections_max: int
    #: keep every connection, not only where the request asks for it
    keep_alive: bool
    keep_alive_timeout_s: float
    #: for a whole request, from its first byte, and for a peer to take some of its answer
    stall_timeout_s: float = 60.0


@dataclass(frozen=True, slots=True)
class MergedLimits:
    """Memory for what is read of merged files."""

    #: of what was read at once; 0 keeps none
    kept_bytes: int = 64 << 20
    #: seconds since one was last asked for
    kept_s: float = 10.0
    index_cache_bytes: int = 16 << 20
