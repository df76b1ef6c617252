"""What contributes what: contrasts of the factorial, the best of both sides, and where queues at nodes cost or pay.

All are ratios of times, taken seed by seed on the same jobs: 1.2 is 1.2 times as fast. The effect of a switch is the
geometric mean over all combinations of the others, so it is what the switch does in the middle of them. Beside it
stands what it does alone, on stock's side, and what its lack does to what ships.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Final

from yaqd.model.values import value
from yaqd.sim.study.design import SHIPPED_NAME, StudyCell
from yaqd.sim.study.report.intervals import Interval, interval, ratio, times
from yaqd.sim.study.report.tables import Results

#: factor, its level, what that is held against, how it is called
CONTRASTS: Final = (
    ("queues", "auto", "off", "queues at nodes: auto, not off"),
    ("queues", "always", "off", "queues at nodes: always, not off"),
    ("events", "on", "off", "heartbeats out of turn"),
    ("asks", "on", "off", "decisions at asks"),
    ("jobs", "fair", "fifo", "jobs: fair, not fifo"),
    ("jobs", "srjf", "fifo", "jobs: srjf, not fifo"),
    ("jobs", "srjf", "fair", "jobs: srjf, not fair"),
    ("nodes", "srjf", "fifo", "node order: srjf, not fifo"),
)
#: nothing of ours is on
_NOTHING: Final = {"queues": "off", "events": "off", "asks": "off", "jobs": "fifo"}
#: figures by which a best is chosen
CHOSEN_BY: Final = ("median", "p95", "mean")


@value()
class Effect:
    """A switch at one load, or over all of them (None)."""

    what: str
    metric: str
    load: float | None
    #: over all combinations of the other switches
    overall: Interval
    #: how many combinations those were, at each load
    pairs: int
    #: nothing else on; None: the switch cannot be alone
    alone: Interval | None
    #: all else as shipped; None: it is not among what ships
    shipped: Interval | None


def effects(results: Results, metric: str, load: float | None) -> Iterator[Effect]:
    """Yield what each switch contributes to a metric that is better where it is smaller."""
    ours = [c for c in results.cells("main") if c.side == "ours" and load in (None, c.load)]
    loads = len({cell.load for cell in ours})
    base = dict(next(cell.factors for cell in ours if cell.name == SHIPPED_NAME)) if ours else {}
    for factor, level, against, what in CONTRASTS if ours else ():
        pairs = list(_pairs(ours, factor, level, against))
        alone = [pair for pair in pairs if _is_base(pair[1], _NOTHING, factor)]
        around = [pair for pair in pairs if _is_base(pair[0], base, factor)] if base.get(factor) == level else []
        yield Effect(
            what,
            metric,
            load,
            _faster(results, pairs, metric),
            len(pairs) // loads,
            _faster(results, alone, metric) if alone else None,
            _faster(results, around, metric) if around else None,
        )


def _pairs(cells: Sequence[StudyCell], factor: str, level: str, against: str) -> Iterator[tuple[StudyCell, StudyCell]]:
    """With the level, and the same cell without. Without queues there is no node order: those with the shipped one are
    held against them."""
    others = {_rest(cell, factor): cell for cell in cells if cell.level(factor) == against}
    for cell in cells:
        is_twin = factor != "queues" or cell.level("nodes") == "srjf"
        if cell.level(factor) == level and is_twin and (other := others.get(_rest(cell, factor))) is not None:
            yield cell, other


def _rest(cell: StudyCell, factor: str) -> tuple[object, ...]:
    apart = {factor, "nodes"} if factor == "queues" else {factor}
    return cell.load, *((name, level) for name, level in cell.factors if name not in apart)


def _is_base(cell: StudyCell, base: dict[str, str], factor: str) -> bool:
    return all(cell.level(name) in (level, "") for name, level in base.items() if name != factor) and (
        factor != "nodes" or base.get("queues") == "always"
    )


def _faster(results: Results, pairs: Sequence[tuple[StudyCell, StudyCell]], metric: str) -> Interval:
    """How many times faster the first ones of the pairs are, in the geometric mean."""
    logs = [
        [math.log(slow / fast) for slow, fast in zip(*(results.values(c, metric) for c in (other, cell)), strict=True)]
        for cell, other in pairs
    ]
    return times(interval([math.fsum(seed) / len(pairs) for seed in zip(*logs, strict=True)]))


@value()
class Duel:
    """Two cells at one load, and how many times faster the first one is."""

    load: float
    metric: str
    cell: StudyCell
    other: StudyCell
    faster: Interval


def _is_off(cell: StudyCell) -> bool:
    return all(cell.level(factor) == "off" for factor in ("queues", "events", "asks")) and cell.level("jobs") != "srjf"


def duel(results: Results, metric: str, cell: StudyCell, other: StudyCell) -> Duel:
    """Hold one cell against another, seed by seed."""
    return Duel(cell.load, metric, cell, other, ratio(results.values(other, metric), results.values(cell, metric)))


def best(results: Results, cells: Sequence[StudyCell], metric: str) -> StudyCell:
    """Return the cell with the smallest mean."""
    return min(cells, key=lambda cell: results.mean(cell, metric).mid)


def bests(results: Results) -> Iterator[tuple[str, Duel]]:
    """Yield, by load and metric, each against the best of stock: the best of ours, the best of ours without queues,
    what ships, and stock's better order with all of ours off, which is our rules at heartbeats."""
    main = results.cells("main")
    for load in sorted({cell.load for cell in main}):
        at = [cell for cell in main if cell.load == load]
        mine = [cell for cell in at if cell.side == "ours"]
        unqueued = [cell for cell in mine if cell.level("queues") == "off"]
        off = [cell for cell in mine if _is_off(cell)]
        shipped = [cell for cell in mine if cell.name == SHIPPED_NAME]
        for metric in CHOSEN_BY:
            theirs = best(results, [cell for cell in at if cell.side == "stock"], metric)
            groups = {"best": mine, "best without queues": unqueued, "as shipped": shipped, "all off": off}
            for who, among in groups.items():
                yield who, duel(results, metric, best(results, among, metric), theirs)


def queue_duels(results: Results, metric: str, queues: str = "always") -> Iterator[Duel]:
    """Yield each combination with queues at nodes, in the shipped order, against the same without."""
    ours = [cell for cell in results.cells("main") if cell.side == "ours"]
    for cell, other in _pairs(ours, "queues", queues, "off"):
        yield duel(results, metric, cell, other)


def queue_duels_elsewhere(results: Results, metric: str) -> Iterator[Duel]:
    """Yield the same for each level of the other factors: what ships with queues always, against it without."""
    cells = results.cells("others")
    for cell in cells:
        for other in cells:
            if (cell.name, other.name) == ("ours with queues", "ours without queues") and cell.factors == other.factors:
                yield duel(results, metric, cell, other)


@value()
class AutoCell:
    """What ships where queues may form, against itself with queues always and with none."""

    #: which cell of the study
    where: str
    metric: str
    #: the times as shipped, with queues always, with none, s
    auto_s: float
    always_s: float
    off_s: float
    #: how many times as fast it is as the better of both, seed by seed
    faster: Interval

    @property
    def worth(self) -> float:
        """Return how many times as fast it is as the better of both."""
        return min(self.always_s, self.off_s) / self.auto_s


def auto_cells(results: Results, metric: str) -> Iterator[AutoCell]:
    """Yield each cell of the study that is there with all three."""
    for part in ("main", "loads", "others"):
        found: dict[tuple[object, ...], dict[str, StudyCell]] = {}
        for cell in results.cells(part):
            queues = _queues_of(cell)
            if queues and cell.level("nodes") != "fifo":
                found.setdefault((cell.load, *_apart_from_queues(cell)), {})[queues] = cell
        for where, three in found.items():
            if len(three) == 3:
                times_s = {queues: results.mean(cell, metric).mid for queues, cell in three.items()}
                better = three[min(("always", "off"), key=times_s.__getitem__)]
                faster = ratio(results.values(better, metric), results.values(three["auto"], metric))
                said = f"{part}, load {where[0]:g}" + "".join(f", {one}" for one in where[1:])
                yield AutoCell(said, metric, times_s["auto"], times_s["always"], times_s["off"], faster)


def _queues_of(cell: StudyCell) -> str:
    """Return how it has queues at nodes; empty: it is not one of the three."""
    names = {"ours as shipped": "auto", "ours with queues": "always", "ours without queues": "off"}
    return cell.level("queues") if cell.part == "main" else names.get(cell.name, "")


def _apart_from_queues(cell: StudyCell) -> list[str]:
    return [f"{name} {level}" for name, level in cell.factors if name not in ("queues", "nodes")]


def verdict(faster: Interval) -> str:
    """Return in words what queues at nodes do there."""
    if faster.low > 1.0:
        return "queues pay here"
    if faster.high < 1.0:
        return "queues cost here"
    return "no difference shown"
