"""How many containers a node can run at once, whatever it says: as many of the smallest as it has room for.

A node counts its slots itself, by what it runs. A count that is too high would give its queue a bound that is too high.
A job's tasks would then be sent to wait there as if it ran thousands.
"""

from rm.scheduler.view.calculators import Calculator
from rm.scheduler.view.node import NodeView
from yaqd.model import Resource


class Slots:
    def __init__(self, calculator: Calculator, least: Resource) -> None:
        """`least`: the smallest container that is given."""
        self._counts_vcores = calculator.counts_vcores
        self._mb, self._vcores = max(1, least.memory_mb), max(1, least.vcores)

    def believed(self, node: NodeView, said: int) -> int:
        """Return what the node `said`, and no more than there can be."""
        total = node.total
        if said * self._mb <= total.memory_mb and (not self._counts_vcores or said * self._vcores <= total.vcores):
            return said
        most = total.memory_mb // self._mb
        if self._counts_vcores:
            most = min(most, total.vcores // self._vcores)
        return min(said, max(most, self._charged(node)))

    def _charged(self, node: NodeView) -> int:
        """Count what it holds within its size, which may be ones smaller than any that are given now."""
        count, mb, vcores = 0, 0, 0
        for resource in node.containers.values():
            mb, vcores = mb + resource.memory_mb, vcores + resource.vcores
            if mb > node.total.memory_mb or (self._counts_vcores and vcores > node.total.vcores):
                break
            count += 1
        return count
