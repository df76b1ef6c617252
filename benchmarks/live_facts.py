"""What stands beside a live row, for people."""

import statistics
from collections.abc import Sequence

from .live_cluster import Variant
from .live_runs import Loaded, Traced


def facts_of(result: Loaded | Traced, variant: Variant) -> str:
    """Bound of the queues, median gap between a process and the next on its slot, and what went wrong."""
    waited = result.gaps_s if isinstance(result, Loaded) or result.bounds or variant.opportunistic else []
    gap = f"start gap {1000 * statistics.median(waited):.0f} ms" if waited else "nothing waited at a node"
    failures = result.failures
    statuses = "".join(f", {count} with exit status {status}" for status, count in sorted(failures.by_status.items()))
    first = f" ({' '.join(failures.first.split())[:160]})" if failures.first else ""
    losses = f"{failures.refused_starts} starts refused{statuses}, {result.doubled} run twice{first}"
    return f"{bound_of(result.bounds, variant)}, {gap}, {losses}"


def bound_of(bounds: Sequence[int], variant: Variant) -> str:
    """Say how many may wait at a node."""
    if variant.opportunistic and not variant.is_ours:
        return f"b {variant.queue_length}"
    return f"b {min(bounds)} to {max(bounds)}" if bounds else "no queues"
