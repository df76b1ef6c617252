"""What the two commands that look for room above the shipped weights share: options, graphs, how rows are printed."""

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from yaqd.sim.stages.settings import MEASURED_SEED
from yaqd.sim.workloads.drawn import WorkloadError
from yaqd.sim.workloads.graphs import GraphSet, draw_graphs
from yaqd.sim.workloads.tpch import find_tpch, tpch

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

#: of the first sequence: nothing is measured or trained there
SEED: Final = MEASURED_SEED - 10_000
_DRAWN_SEED: Final = 1


def parser_of(name: str, doc: str | None, rows: Sequence[str], sequences: int) -> argparse.ArgumentParser:
    """Return the options that both have. `sequences`: of each row, unless told."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.clotho.{name}", description=doc)
    parser.add_argument("--only", action="append", choices=list(rows), default=[], metavar="ROW", help=", ".join(rows))
    parser.add_argument("--sequences", type=int, default=sequences, help=f"of each row (default {sequences})")
    parser.add_argument("--graphs", choices=("tpch", "drawn"), default="tpch", help="default tpch")
    parser.add_argument("--json", action="store_true", help="print one JSON value")
    return parser


def graphs_of(parser: argparse.ArgumentParser, given: argparse.Namespace) -> GraphSet:
    """Return the graphs asked for. The command ends where there are none, or too few sequences to compare."""
    if given.sequences < 2:
        parser.error("--sequences must be at least 2")
    try:
        return tpch(find_tpch()) if given.graphs == "tpch" else draw_graphs(_DRAWN_SEED)
    except WorkloadError as missing:
        parser.error(f"{missing}; --graphs drawn needs no files")


def print_rows(given: argparse.Namespace, rows: Sequence[str], measured: Callable[[str], "DataclassInstance"]) -> None:
    """Measure the rows asked for, and print each as it comes, or all as one JSON value."""
    found = list[dict[str, Any]]()
    for row in given.only or rows:
        one = measured(row)
        found.append(asdict(one))
        if not given.json:
            print(one, flush=True)
    if given.json:
        print(json.dumps(found, indent=2))
