"""What a busy ResourceManager leaves of the slots: `python -m benchmarks.rm_bound`.

2,000 simulated NodeManagers (`--nodes`) whose tasks take a second talk Hadoop RPC to one ResourceManager, which has a
core of its own. The driver, nodes and masters in one process, has the other. Masters want far more than can run, and
start what they are given at the node in this process: starts are no load of the ResourceManager's. Nodes of ours have
the live queue of a NodeManager. All report ends at once, as NodeManagers of both sides do.

Row `rm-bound`: slots that work, the best of ours against the best of stock's. It counts only where the driver's core is
less than 70 % busy on both sides: otherwise the driver is what is measured.

`--costs FILE` measures instead what a heartbeat, a master's call and a container take of the ResourceManager's core,
for `yaq sim line --costs FILE`.
"""

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, Final

from yaqd.ipc.loop import run

from ..options import progress, stock_jars
from ..report import make_row, print_table
from ..rm_load import pinned
from .sides import SIDES, Side, manager_of
from .windows import Costs, Load, Window, measure, measure_costs

#: of the driver's core: beyond it the row says nothing
_DRIVER_MOST: Final = 0.7
#: of `--costs`: masters call so often, s, that nothing waits at nodes unless it must
_COSTS_POLL_S: Final = 0.05


def main() -> int:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rm_bound", description=__doc__)
    parser.add_argument("--side", action="append", choices=tuple(SIDES), help="may be repeated (default: all)")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument(
        "--scale", type=float, default=1.0, help="multiplies nodes and times, e.g. 0.1 for a quick look"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.add_argument("--costs", type=Path, metavar="FILE", help="measure costs of calls, and write them there")
    for field in fields(Load):
        name = "--" + field.name.removesuffix("_s")
        parser.add_argument(name, type=type(field.default), default=field.default, help=f"default {field.default}")
    given = parser.parse_args()
    values = {field.name: getattr(given, field.name.removesuffix("_s")) for field in fields(Load)}
    for name in ("nodes", "warm_s", "window_s"):
        values[name] = type(values[name])(values[name] * given.scale)
    load = Load(**values)
    if given.costs is not None:
        return _costs(load, given.costs)
    found = _runs([SIDES[name] for name in given.side or SIDES], load, given.runs)
    if given.json:
        print(
            json.dumps({"load": asdict(load), "found": {name: [asdict(w) for w in ws] for name, ws in found.items()}})
        )
    else:
        _show(found)
    return 0


def _runs(sides: Sequence[Side], load: Load, runs: int) -> dict[str, list[Window]]:
    jars = None if all(side.is_ours for side in sides) else stock_jars()
    found: dict[str, list[Window]] = {}
    for _ in range(runs):
        for side in sides:
            if not side.is_ours and jars is None:
                continue
            window = _one(side, load, jars, measure)
            found.setdefault(side.name, []).append(window)
            progress(f"{side.name}: {_said(window)}")
    return found


def _one(side: Side, load: Load, jars: Any, what: Any) -> Any:
    """Run one ResourceManager on the first core, and the driver on the last one."""
    cores = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory(prefix="yaqd-bench-") as name, pinned(cores[-1]):
        folder = Path(name)
        with manager_of(side, load.heartbeat_s, jars, folder / side.name, cores[0]) as manager:
            return run(what(manager, side, load, folder))


def _said(window: Window) -> str:
    return (
        f"{100 * window.used:.1f} % of the slots work, {window.ended / window.seconds:.0f} tasks/s, "
        f"ResourceManager {100 * window.rm_busy:.0f} % busy, driver {100 * window.driver_busy:.0f} %, "
        f"{window.beats / window.seconds:.0f} heartbeats/s answered in {window.answer_ms:.0f} ms, calls in "
        f"{window.call_ms:.0f} ms, {100 * window.waiting:.0f} % as many wait, {window.refused} went back"
    )


def _show(found: dict[str, list[Window]]) -> None:
    best: dict[bool, list[Window]] = {}
    for name, windows in found.items():
        is_ours = SIDES[name].is_ours
        if is_ours not in best or _middle(windows) > _middle(best[is_ours]):
            best[is_ours] = windows
    if True in best:
        theirs = [100 * window.used for window in best.get(False, [])]
        own = [100 * window.used for window in best[True]]
        print_table([make_row("rm-bound", own, theirs, "% of slots", higher_is_better=True)])
    busiest = max(window.driver_busy for windows in best.values() for window in windows)
    if busiest > _DRIVER_MOST:
        print(f"rm-bound: does not count: the driver's core was {100 * busiest:.0f} % busy")
    for name, windows in found.items():
        for window in windows:
            print(f"{name}: {_said(window)}")


def _middle(windows: Sequence[Window]) -> float:
    return sorted(window.used for window in windows)[len(windows) // 2]


def _measured_costs(side: Side, load: Load) -> tuple[Costs, Window]:
    costs, window = _one(side, load, None, measure_costs)
    progress(f"{side.name}: {costs}; then {_said(window)}")
    return costs, window


def _costs(load: Load, file: Path) -> int:
    """Measure them without queues, with queues in which nothing waits, and with such that are never empty."""
    load = replace(load, poll_s=_COSTS_POLL_S)
    off, _ = _measured_costs(SIDES["off"], load)
    queues, _ = _measured_costs(SIDES["auto"], load)
    always, waiting = _measured_costs(SIDES["always"], load)
    queued_s = max(0.0, waiting.container_s(always.beat_s, queues.call_s) - queues.container_s)
    heeded_s = max(0.0, always.beat_s - queues.beat_s)
    said_of = {
        "off": asdict(off) | {"queued_s": 0.0, "heeded_s": 0.0},
        "queues": asdict(queues) | {"queued_s": queued_s, "heeded_s": heeded_s},
    }
    sides = {side: {name: round(seconds, 8) for name, seconds in costs.items()} for side, costs in said_of.items()}
    said = (
        f"python -m benchmarks.rm_bound --costs, {time.strftime('%Y-%m-%d', time.gmtime())}, {load.nodes} nodes, "
        f"one core of {_processor()}, Python {platform.python_version()}"
    )
    file.write_text(json.dumps({"source": said, "sides": sides}, indent=1) + "\n")
    progress(f"wrote {file}")
    return 0


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


if __name__ == "__main__":
    sys.exit(main())
