"""What the cells say: a table, the line where queues begin to pay, and all of it as JSON."""

import math
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any, Final

from yaqd.model.values import value
from yaqd.sim.line.cells import QUEUES, LineCell, LineFound

#: so many times the slots that work without queues: there they pay
PAYS: Final = 1.03
HEAD: Final = (
    *("heartbeat", "task", "nodes", "tasks/s", "RM busy", "off", "auto", "always"),
    *("auto/off", "idle off", "idle auto", "answer off", "answer auto"),
)


@value()
class LinePoint:
    """One cluster with one kind of task, over all seeds: means by way to have queues."""

    heartbeat_s: float
    task_s: float
    nodes: int
    tasks_a_second: float
    found: dict[str, LineFound]

    def gain(self, way: str) -> float:
        """Return how many times as many slots work as without queues."""
        used, without = self.found[way].used, self.found["off"].used
        return used / without if without else math.inf if used else 1.0

    def idle_s(self, way: str) -> float:
        """Return how long a slot idles from one task to the next, mean, s."""
        used = self.found[way].used
        return self.task_s * (1.0 / used - 1.0) if used else math.inf

    def row(self) -> tuple[str, ...]:
        """Return what the table shows of it."""
        off, auto = self.found["off"], self.found["auto"]
        return (
            f"{self.heartbeat_s:g} s",
            f"{self.task_s:g} s",
            f"{self.nodes}",
            f"{self.tasks_a_second:.0f}",
            f"{100 * off.busy:.0f} %",
            *(f"{100 * self.found[way].used:.1f} %" for way in QUEUES),
            f"{self.gain('auto'):.2f}x",
            *(f"{1000 * self.idle_s(way):.0f} ms" for way in ("off", "auto")),
            f"{1000 * off.answer_s:.0f} ms",
            f"{1000 * auto.answer_s:.0f} ms",
        )


def points(cells: Sequence[LineCell], found: Sequence[LineFound]) -> list[LinePoint]:
    """Put together what belongs to one cluster, in the order of the cells."""
    by: dict[tuple[float, float, int], dict[str, list[LineFound]]] = {}
    rates: dict[tuple[float, float, int], float] = {}
    for cell, one in zip(cells, found, strict=True):
        by.setdefault(cell.at, {}).setdefault(cell.queues, []).append(one)
        rates[cell.at] = cell.tasks_a_second
    return [LinePoint(*at, rates[at], {way: _mean(ones) for way, ones in ways.items()}) for at, ways in by.items()]


def _mean(ones: Sequence[LineFound]) -> LineFound:
    return LineFound(*(fmean(getattr(one, name) for one in ones) for name in ("used", "busy", "answer_s")))


def line(found: Sequence[LinePoint], way: str) -> Iterator[str]:
    """Say for each heartbeat and kind of task at how many nodes queues pay."""
    for heartbeat_s, task_s in dict.fromkeys((one.heartbeat_s, one.task_s) for one in found):
        mine = [one for one in found if (one.heartbeat_s, one.task_s) == (heartbeat_s, task_s)]
        pays = [one.nodes for one in mine if one.gain(way) >= PAYS]
        where = f"from {pays[0]} nodes on" if pays else "nowhere"
        if pays and len(pays) < sum(one.nodes >= pays[0] for one in mine):
            where = f"at {', '.join(map(str, pays))} nodes"
        if pays and pays[0] == mine[0].nodes and len(pays) == len(mine):
            where = "everywhere"
        yield f"heartbeat {heartbeat_s:g} s, tasks of {task_s:g} s: {way} pays {where}"


def as_json(found: Sequence[LinePoint], said: dict[str, Any]) -> dict[str, Any]:
    """Return all points, and what was run."""
    rows = [
        {
            "heartbeat_s": one.heartbeat_s,
            "task_s": one.task_s,
            "nodes": one.nodes,
            "tasks_a_second": one.tasks_a_second,
            "ways": {
                way: {"used": round(f.used, 4), "busy": round(f.busy, 4), "answer_s": round(f.answer_s, 5)}
                for way, f in one.found.items()
            },
        }
        for one in found
    ]
    return {**said, "points": rows, "line": [said for way in ("auto", "always") for said in line(found, way)]}
