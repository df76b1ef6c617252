"""Nodes as the scheduler sees them, indexed by what they have free.

The index is a grid. Its rows are free memory in steps of the smallest container, its cells are free virtual cores. Two
bit masks say which of them hold a node. Finding the emptiest node with enough room reads masks, so its cost depends on
how finely memory is cut. The number of nodes does not matter. (A heap by free memory was the alternative: it needs a
walk when cores run out first.) Taking the emptiest node spreads containers, as Hadoop's heartbeat order does by chance.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable

from rm.scheduler.view.calculators import Calculator
from rm.scheduler.view.node import Index, NodeView
from yaqd.model import ANY_HOST, NodeId, Resource

#: memory steps and cores beyond which nodes are no longer told apart by the index
_STEPS_MAX = 8191
_CORES_MAX = 1023
#: nodes refused (blacklisted, too small in a further resource) before a search gives up
_REFUSALS_MAX = 64
#: nodes of a host or a rack up to which a search looks at each
_LOOKED_AT_ONE_BY_ONE = 16


class _Row:
    __slots__ = ("cells", "mask")

    def __init__(self) -> None:
        #: by cores; the nodes of a cell in the order of their coming. The first ones leave first: a plain dict asked
        #: for its first key would pass all that have left
        self.cells: dict[int, OrderedDict[NodeView, None]] = {}
        self.mask = 0


class FreeIndex:
    """Nodes by free memory and free cores."""

    def __init__(self, calculator: Calculator, step_mb: int) -> None:
        self._calculator = calculator
        self._counts_vcores = calculator.counts_vcores
        self._step_mb = max(1, step_mb)
        self._rows: dict[int, _Row] = {}
        self._mask = 0

    def cell_of(self, node: NodeView) -> tuple[int, int]:
        steps = node.free_mb // self._step_mb
        cores = node.free_cores if self._counts_vcores else 0
        if 0 <= steps <= _STEPS_MAX and 0 <= cores <= _CORES_MAX:
            return steps, cores
        return min(max(0, steps), _STEPS_MAX), min(max(0, cores), _CORES_MAX)

    def move(self, node: NodeView, old: tuple[int, int], new: tuple[int, int]) -> None:
        """Do what `remove` and `add` do, for most moves without either."""
        rows, (steps, cores) = self._rows, old
        nodes = rows[steps].cells[cores]
        if len(nodes) > 1:
            del nodes[node]
        else:
            self.remove(node, old)
        steps, cores = new
        row = rows.get(steps)
        if row is not None and cores in row.cells:
            row.cells[cores][node] = None
        else:
            self.add(node, new)

    def add(self, node: NodeView, cell: tuple[int, int]) -> None:
        steps, cores = cell
        row = self._rows.get(steps)
        if row is None:
            row = self._rows[steps] = _Row()
        if not row.mask:
            self._mask |= 1 << steps
        nodes = row.cells.get(cores)
        if nodes is None:
            row.cells[cores] = OrderedDict({node: None})
            row.mask |= 1 << cores
        else:
            nodes[node] = None

    def remove(self, node: NodeView, cell: tuple[int, int]) -> None:
        steps, cores = cell
        row = self._rows[steps]
        nodes = row.cells[cores]
        if len(nodes) > 1:
            del nodes[node]
            return
        del row.cells[cores]
        row.mask ^= 1 << cores
        if not row.mask:
            self._mask ^= 1 << steps

    def emptiest(self, need: Resource, accepts: Callable[[NodeView], bool] | None) -> NodeView | None:
        """Find the node with the most memory free (then cores) that has room for `need` and is accepted."""
        fits = self._calculator.fits_among
        least_steps = min(need.memory_mb // self._step_mb, _STEPS_MAX)
        least_cores = min(need.vcores, _CORES_MAX) if self._calculator.counts_vcores else 0
        mask = self._mask >> least_steps
        refusals = 0
        while mask:
            top = mask.bit_length() - 1
            mask ^= 1 << top
            row = self._rows[top + least_steps]
            cores_mask = row.mask >> least_cores
            while cores_mask:
                top = cores_mask.bit_length() - 1
                cores_mask ^= 1 << top
                for node in row.cells[top + least_cores]:
                    if fits(need, node.free_mb, node.free_cores, node.free_extras) and (
                        accepts is None or accepts(node)
                    ):
                        return node
                    refusals += 1
                    if refusals >= _REFUSALS_MAX:
                        return None
        return None


class NodeTable:
    """All usable nodes, by id and by place (a host, a rack, `*`), with their totals.

    Each container moves its node in every index, so there are no more of them than are asked. One is for all nodes, and
    each rack that somebody has named has its own. A host has a node or two, which are looked at one by one.
    """

    def __init__(self, calculator: Calculator, step_mb: int) -> None:
        self._calculator = calculator
        self._step_mb = step_mb
        self._nodes: dict[NodeId, NodeView] = {}
        #: how many nodes have ever joined
        self._joined = 0
        self._everywhere = FreeIndex(calculator, step_mb)
        #: indexes of the racks that were asked for
        self._racks: dict[str, FreeIndex] = {}
        #: nodes of each host and of each rack
        self._places: dict[str, dict[NodeId, NodeView]] = {}
        self._sizes: dict[Resource, int] = {}
        self.total = Resource()
        #: largest amount of each resource on any node
        self.largest = Resource()

    def __len__(self) -> int:
        return len(self._nodes)

    def get(self, node_id: NodeId) -> NodeView | None:
        return self._nodes.get(node_id)

    def all(self) -> list[NodeView]:
        return list(self._nodes.values())

    def at(self, name: str) -> Iterable[NodeView]:
        """List the nodes on this host or in this rack."""
        return self._places.get(name, {}).values()

    def has_place(self, name: str) -> bool:
        """Tell whether there is a node on this host or in this rack."""
        return name in self._places

    def emptiest(self, need: Resource, accepts: Callable[[NodeView], bool] | None, place: str) -> NodeView | None:
        """Find the emptiest node with room for `need` on this host, in this rack or (`*`) anywhere. `accepts` None
        takes any."""
        if place == ANY_HOST:
            return self._everywhere.emptiest(need, accepts)
        nodes = self._places.get(place)
        if nodes is None:
            return None
        if len(nodes) > _LOOKED_AT_ONE_BY_ONE:
            return self._index_of_rack(place, nodes).emptiest(need, accepts)
        fits = self._calculator.fits_among
        best: NodeView | None = None
        most = (-1, -1)
        for node in nodes.values():
            cell = node.cell
            if (
                cell is not None
                and cell > most
                and fits(need, node.free_mb, node.free_cores, node.free_extras)
                and (accepts is None or accepts(node))
            ):
                best, most = node, cell
        return best

    def _index_of_rack(self, rack: str, nodes: dict[NodeId, NodeView]) -> FreeIndex:
        index = self._racks.get(rack)
        if index is None:
            index = self._racks[rack] = FreeIndex(self._calculator, self._step_mb)
            for node in nodes.values():
                node.indexes = (*node.indexes, index)
                if node.cell is not None:
                    index.add(node, node.cell)
        return index

    def add(self, node: NodeView) -> None:
        self._nodes[node.id] = node
        self._joined += 1
        node.number = self._joined
        for place in (node.rack, node.id.host):
            self._places.setdefault(place, {})[node.id] = node
        node.indexes = self._indexes_of(node)
        self._count_size(node.total, 1)
        self.enter(node)

    def remove(self, node: NodeView) -> None:
        self.leave(node)
        del self._nodes[node.id]
        for place in (node.rack, node.id.host):
            nodes = self._places[place]
            del nodes[node.id]
            if not nodes:
                del self._places[place]
                self._racks.pop(place, None)
        self._count_size(node.total, -1)

    def resize(self, node: NodeView, total: Resource) -> None:
        self._count_size(node.total, -1)
        self.set_free(node, node.free + (total - node.total))
        node.total = total
        self._count_size(total, 1)

    def set_free(self, node: NodeView, free: Resource) -> None:
        node.free = free
        node.queue.is_heard, node.queue.ends_in = False, None
        self._settle(node)

    def change_free(self, node: NodeView, change: Resource, sign: int) -> None:
        """Change what the node has free by so much, more (sign 1) or less (-1)."""
        node.free_mb += sign * change.memory_mb
        node.free_cores += sign * change.vcores
        node.queue.is_heard, node.queue.ends_in = False, None
        if change.extras:
            node.free_extras = (Resource(0, 0, node.free_extras) + Resource(0, 0, change.extras) * sign).extras
        self._settle(node)

    def _settle(self, node: NodeView) -> None:
        """Move the node to the cell that is right for what it has free."""
        old = node.cell
        if old is None:
            return
        new = self._everywhere.cell_of(node)
        if new == old:
            return
        node.cell = new
        for index in node.indexes:
            index.move(node, old, new)

    def enter(self, node: NodeView) -> None:
        """Let the node be found, unless it is reserved."""
        if node.reserved is None:
            node.cell = cell = self._everywhere.cell_of(node)
            for index in node.indexes:
                index.add(node, cell)

    def leave(self, node: NodeView) -> None:
        if node.cell is not None:
            for index in node.indexes:
                index.remove(node, node.cell)
            node.cell = None

    def _count_size(self, size: Resource, sign: int) -> None:
        self.total = self.total + size * sign
        self._sizes[size] = self._sizes.get(size, 0) + sign
        if not self._sizes[size]:
            del self._sizes[size]
        names = sorted({n for s in self._sizes for n in s.extras})
        extras = {n: max(s.extras.get(n, 0) for s in self._sizes) for n in names}
        self.largest = Resource(
            max((s.memory_mb for s in self._sizes), default=0),
            max((s.vcores for s in self._sizes), default=0),
            extras,
        )

    def _indexes_of(self, node: NodeView) -> tuple[Index, ...]:
        found = [self._racks.get(place) for place in (node.rack, node.id.host)]
        return (self._everywhere, *[index for index in found if index is not None])

    def validate(self) -> None:
        """Assert every invariant."""
        total = Resource()
        for node in self._nodes.values():
            held = Resource()
            for amount in node.containers.values():
                held = held + amount
            assert node.free == node.total - held, (node.id, node.free, node.total, held)
            assert not node.is_draining or node.free.is_zero(), (node.id, node.free)
            assert (node.cell is None) == (node.reserved is not None)
            assert node.cell is None or node.cell == self._everywhere.cell_of(node)
            assert set(node.indexes) == set(self._indexes_of(node))
            total = total + node.total
        assert (total.memory_mb, total.vcores) == (self.total.memory_mb, self.total.vcores)
