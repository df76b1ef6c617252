"""The options that every benchmark with two sides takes."""

import argparse
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from .report import Row, print_table, to_json
from .stock.artifacts import HadoopJars, StockUnavailable, fetch


@dataclass(frozen=True, slots=True)
class Options:
    """How to run, and which rows and sides."""

    json: bool
    runs: int
    only: tuple[str, ...]
    #: Sizes are multiplied by this; below 1 for a quick look.
    scale: float
    sides: tuple[str, ...]
    #: of the benchmark's own switches, those that are on
    switches: frozenset[str] = frozenset()
    #: folder where what was measured of each task is kept; empty: it is not
    keep: str = ""

    def wants(self, row_id: str) -> bool:
        return not self.only or row_id in self.only

    @property
    def ours(self) -> bool:
        return "ours" in self.sides

    @property
    def theirs(self) -> bool:
        return "theirs" in self.sides


def parse_options(
    benchmark: str,
    description: str,
    rows: Sequence[str],
    *,
    runs: int = 3,
    switches: Mapping[str, str] = {},
    words: Sequence[str] | None = None,
    keeps: bool = False,
) -> Options:
    """Reads the command line, or `words`; `switches`: the benchmark's own, with what each does; `keeps`: it can keep
    what it measured of each task."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{benchmark}", description=description)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.add_argument("--runs", type=int, default=runs, help=f"runs of each side (default {runs})")
    parser.add_argument("--only", action="append", choices=rows, default=[], metavar="ROW", help=", ".join(rows))
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies sizes, e.g. 0.05 for a quick look")
    parser.add_argument("--side", choices=("ours", "theirs"), help="run one side alone")
    for name, does in switches.items():
        parser.add_argument(f"--{name}", action="store_true", help=does)
    if keeps:
        parser.add_argument("--keep", default="", metavar="FOLDER", help="keep what was measured of each task there")
    given = parser.parse_args(words)
    if given.runs < 1 or not 0 < given.scale <= 100:
        parser.error("--runs must be at least 1, --scale above 0 and at most 100")
    sides = (given.side,) if given.side else ("ours", "theirs")
    on = frozenset(name for name in switches if getattr(given, name))
    keep = given.keep if keeps else ""
    return Options(given.json, given.runs, tuple(given.only), given.scale, sides, on, keep)


def stock_jars() -> HadoopJars | None:
    """The stock jars where they can be had; says so where not."""
    try:
        return fetch()
    except StockUnavailable as missing:
        progress(f"the stock side does not run here: {missing}")
        return None


def progress(text: str) -> None:
    """A line for whoever waits; never among the results."""
    print(text, file=sys.stderr, flush=True)


def show(rows: Sequence[Row], beside: Mapping[str, Mapping[str, Any]], options: Options) -> int:
    """Prints the rows and what was measured beside each; the exit code says nothing about who won."""
    if options.json:
        sys.stdout.write(to_json(rows, beside=beside) + "\n")
        return 0
    print_table(rows)
    for row_id, facts in beside.items():
        for name, value in facts.items():
            print(f"{row_id}: {name}: {_text(value)}")
    return 0


class RowModule(Protocol):
    """A module that has rows of a benchmark."""

    #: ids of its rows
    ROWS: Collection[str]
    __name__: str

    def measure(self, options: Options) -> tuple[list[Row], dict[str, Mapping[str, Any]]]:
        """Return the rows asked for, and what belongs beside each."""
        ...


def run_modules(benchmark: str, description: str, modules: Sequence[Any], *, runs: int) -> int:
    """Read the command line, measure the rows asked for of each `RowModule`, and show them; return the exit code."""
    rows: list[Row] = []
    beside: dict[str, Mapping[str, Any]] = {}
    found: list[RowModule] = list(modules)
    options = parse_options(benchmark, description, [row_id for one in found for row_id in one.ROWS], runs=runs)
    for module in found:
        if any(options.wants(row_id) for row_id in module.ROWS):
            progress(module.__name__)
            measured, facts = module.measure(options)
            rows += measured
            beside |= facts
    return show(rows, beside, options)


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_text(part)}" for key, part in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return " ".join(_text(part) for part in value)
    return f"{value:.2f}" if isinstance(value, float) else str(value)
