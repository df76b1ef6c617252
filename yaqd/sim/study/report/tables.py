"""Tables of the study: what each cell has given, over the seeds that all cells of its part have."""

import math
from collections.abc import Iterator, Sequence
from typing import Final

from yaqd.model.values import value
from yaqd.sim.experiments.report import number
from yaqd.sim.study.design import PARTS, Part, StudyCell
from yaqd.sim.study.report.intervals import Interval, interval
from yaqd.sim.study.run import capacities, capacity_of
from yaqd.sim.study.store import StudyStore

#: metric, heading, digits, whether its interval is shown
COLUMNS: Final = (
    ("median", "median s", 1, True),
    ("p95", "p95 s", 1, True),
    ("p99", "p99 s", 0, False),
    ("max", "max s", 0, False),
    ("slowdown_mean", "slowdown", 2, False),
    ("utilization", "slots used %", 1, False),
    ("rm_us_task", "RM us/task", 0, False),
    ("capacity", "capacity %", 1, False),
)


@value()
class StudyTable:
    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Results:
    """The figures of the cells, of seeds that are there for all cells of a part."""

    def __init__(self, cells: Sequence[StudyCell], seeds: Sequence[int], store: StudyStore) -> None:
        self.store: Final = store
        self.asked: Final = tuple(seeds)
        self._cells: Final = {part: [cell for cell in cells if cell.part == part] for part in PARTS}
        #: by cell: the part of the slots that its load is a part of
        self.capacities: Final = {cell.id: capacity_of(cell, store) for cell in cells}
        #: by cell and seed, those that are there
        self._found: Final = {cell.id: self._figures(cell) for cell in cells}
        #: by part: seeds that are whole
        self.seeds: Final[dict[Part, tuple[int, ...]]] = {part: self._whole(part) for part in PARTS}

    def _figures(self, cell: StudyCell) -> dict[int, dict[str, float]]:
        capacity = self.capacities[cell.id]
        if capacity is None:
            return {}
        found = {seed: self.store.found.get(cell.trial(seed, capacity).key) for seed in self.asked}
        return {seed: one.figures for seed, one in found.items() if one is not None}

    def _whole(self, part: Part) -> tuple[int, ...]:
        of_part = [self._found[cell.id] for cell in self._cells[part]]
        return tuple(seed for seed in self.asked if of_part and all(seed in found for found in of_part))

    def cells(self, part: Part) -> list[StudyCell]:
        """Return the cells of a part, if there is a seed that all of them have."""
        return self._cells[part] if self.seeds[part] else []

    def has_both_sides(self, part: Part) -> bool:
        """Return whether ours can be held against stock's."""
        return len({cell.side for cell in self.cells(part)}) > 1

    def values(self, cell: StudyCell, metric: str) -> list[float]:
        """Return one number a seed."""
        found = self._found[cell.id]
        return [found[seed][metric] for seed in self.seeds[cell.part]]

    def mean(self, cell: StudyCell, metric: str) -> Interval:
        """Return the mean over the seeds; of `capacity` over those that it is measured with, % of the slots."""
        if metric != "capacity":
            return interval(self.values(cell, metric))
        found = [100 * part for part in capacities(cell.own_capacity_trials(), self.store)]
        return interval(found) if found else Interval(math.nan, math.nan, math.nan)

    def missing(self) -> dict[Part, int]:
        """Return how many runs each part lacks of those that were asked for; parts that lack none are left out."""
        lacks = {part: sum(len(self.asked) - len(self._found[cell.id]) for cell in self._cells[part]) for part in PARTS}
        return {part: many for part, many in lacks.items() if many}


def main_tables(results: Results) -> Iterator[StudyTable]:
    """Yield a table for each load of the factorial."""
    for load in main_loads(results):
        at = [cell for cell in results.cells("main") if cell.load == load]
        title = f"load {load:g}"
        yield StudyTable(title, ("system", *headings()), tuple(_row(results, cell) for cell in at))


def main_loads(results: Results) -> list[float]:
    """Return the loads of the factorial."""
    return sorted({cell.load for cell in results.cells("main")})


def headings() -> tuple[str, ...]:
    """Return the headings of the figures."""
    return tuple(heading for _, heading, _, _ in COLUMNS)


def _row(results: Results, cell: StudyCell) -> tuple[str, ...]:
    return cell.name, *(plus_minus(results.mean(cell, metric), digits, more) for metric, _, digits, more in COLUMNS)


def plus_minus(found: Interval, digits: int, with_interval: bool = True) -> str:
    """Return a mean as tables have it, with half of its interval where there is one."""
    said = number(found.mid, digits)
    return f"{said} ±{number(found.half, digits)}" if with_interval and found.half == found.half else said
