"""A run: a cluster that all cases share, some cases at a time, and the report."""

import multiprocessing
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.ours import OurCluster
from benchmarks.stock.artifacts import StockUnavailable, fetch
from benchmarks.stock.conf import NodeShape
from tests.differential.diff_case import Case, Scripts
from tests.differential.diff_commands import Commands
from tests.differential.diff_compare import STOCK, STOCK_DAEMONS, differences
from tests.differential.diff_generate import make_case
from tests.differential.diff_model import run_model
from tests.differential.diff_programs import HEAD
from tests.differential.diff_sides import CaseFolder
from tests.differential.diff_stock import StockStreaming, stock_streaming

#: hash() of text is the same in the model as in tasks
HASH_SEED = "0"
_NODES = 2
_SHAPE = NodeShape(memory_mb=6144, vcores=6)
_SITE = {
    "yarn.app.mapreduce.am.resource.mb": 256,
    "mapreduce.map.memory.mb": 512,
    "mapreduce.reduce.memory.mb": 512,
}


@dataclass
class Report:
    seed: int
    cases: int = 0
    #: outcomes compared, by side
    compared: Counter[str] = field(default_factory=Counter)
    #: cases of which the right answer is that they fail
    failing: int = 0
    #: by case number: what differed
    wrong: dict[int, list[str]] = field(default_factory=dict)
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        sides = ", ".join(f"{name} {count}" for name, count in sorted(self.compared.items()))
        numbers = f"; wrong: {', '.join(map(str, sorted(self.wrong)))}" if self.wrong else ""
        found = f"{self.cases} cases of seed {self.seed} in {self.seconds:.0f} s, {len(self.wrong)} wrong{numbers}"
        return [*self.notes, found, f"compared: {sides}; {self.failing} cases were to fail"]

    def as_dict(self) -> dict[str, object]:
        return {
            "seed": self.seed,
            "cases": self.cases,
            "compared": dict(self.compared),
            "failing": self.failing,
            "wrong": {str(number): lines for number, lines in sorted(self.wrong.items())},
            "seconds": round(self.seconds, 1),
        }


def run_cases(
    folder: Path,
    seed: int,
    numbers: Iterable[int],
    *,
    at_once: int,
    seconds: float | None = None,
    stock: bool = True,
    stock_daemons: bool = False,
    keep: bool = False,
    note: Callable[[str], None],
) -> Report:
    """Runs the cases of these numbers, and no further ones after `seconds`. `stock_daemons`: stock Hadoop runs its jobs
    on daemons of its own."""
    report = Report(seed)
    began = time.monotonic()
    with ExitStack() as stack:
        sides = _Sides(folder, stack, stock=stock, stock_daemons=stock_daemons, report=report, keep=keep)
        pool = stack.enter_context(ThreadPoolExecutor(at_once))
        progress = _Progress(report)
        pending: dict[Future[list[str]], int] = {}
        left = iter(numbers)
        while True:
            is_late = seconds is not None and time.monotonic() - began > seconds
            while not is_late and len(pending) < at_once and (number := next(left, None)) is not None:
                pending[pool.submit(sides.case, seed, number)] = number
            if not pending:
                break
            done, _ = wait(pending, return_when=FIRST_COMPLETED)
            for future in done:
                number = pending.pop(future)
                report.cases += 1
                if found := future.result():
                    report.wrong[number] = found
                    progress.clear()
                    note("\n".join(found))
                progress.show()
        progress.clear()
    report.seconds = time.monotonic() - began
    return report


class _Sides:
    """What cases run on."""

    def __init__(
        self, folder: Path, stack: ExitStack, *, stock: bool, stock_daemons: bool, report: Report, keep: bool
    ) -> None:
        self._folder = folder
        self._report = report
        self._keep = keep
        self._lock = threading.Lock()
        # before the seed is in the environment, which the cluster shall do without
        self._cluster = stack.enter_context(OurCluster(folder / "cluster", nodes=_NODES, shape=_SHAPE, site=_SITE))
        os.environ["PYTHONHASHSEED"] = HASH_SEED  # of the model's processes
        context = multiprocessing.get_context("spawn")
        self._models = stack.enter_context(ProcessPoolExecutor(2, context))
        self._commands = stack.enter_context(Commands(folder, HASH_SEED))
        self._stock = self._started_stock(stack, report, stock_daemons) if stock else None

    def _started_stock(self, stack: ExitStack, report: Report, daemons: bool) -> StockStreaming | None:
        try:
            return stack.enter_context(stock_streaming(fetch(), self._folder, daemons=daemons))
        except StockUnavailable as missing:
            report.notes.append(f"without stock Hadoop: {missing}")
            return None

    def case(self, seed: int, number: int) -> list[str]:
        """What is wrong with a case, with all that is needed to see it again."""
        case = make_case(seed, number)
        place = CaseFolder(case, self._folder / f"case-{seed}-{number}")
        try:
            found = self._compared(case, place)
        except Exception as error:
            found = [f"the harness itself: {type(error).__name__}: {error}"]
        if not self._keep:
            place.remove()
        if not found:
            return []
        again = f"scripts/differential.sh --seed {seed} --case {number} --keep DIR"
        shown = [f"    | {line}" for line in _shown(case)]
        return [*case.describe(), *shown, *(f"  {line}" for line in found), f"  again: {again}"]

    def _compared(self, case: Case, place: CaseFolder) -> list[str]:
        expected = self._models.submit(run_model, case, place.splits()).result()
        found: list[str] = []
        sides = {"cluster": lambda: place.cluster(self._commands, self._cluster.conf_dir)}
        if isinstance(case.program, Scripts):
            stock = self._stock
            if stock is not None and not case.program.is_ours_alone and stock.takes(len(case.files)):
                sides[STOCK_DAEMONS if stock.on_daemons else STOCK] = lambda: place.stock(stock)
        else:
            sides["local"] = lambda: place.local(self._commands)
        for name, run in sides.items():
            outcome = run()
            with self._lock:
                self._report.compared[name] += 1
            found += differences(case, expected, outcome, name)
        with self._lock:
            self._report.failing += not expected.succeeded
        return found


def _shown(case: Case) -> list[str]:
    """The program, without what all of them begin with."""
    program = case.program
    if isinstance(program, Scripts):
        commands = {"-mapper": program.mapper, "-combiner": program.combiner, "-reducer": program.reducer}
        return [f"{option} {command}" for option, command in commands.items() if command]
    return program.source.removeprefix(HEAD).splitlines()


class _Progress:
    """A line in a terminal that says how far the run is."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._is_shown = sys.stderr.isatty()
        self._began = time.monotonic()

    def show(self) -> None:
        if self._is_shown:
            took = time.monotonic() - self._began
            print(
                f"\r{self._report.cases} cases, {len(self._report.wrong)} wrong, {took:.0f} s ", end="", file=sys.stderr
            )

    def clear(self) -> None:
        if self._is_shown:
            print("\r\x1b[K", end="", file=sys.stderr)
