"""What `--graphs` names: recorded query graphs, drawn ones, or what a cluster ran."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from yaqd.cli.exits import CommandError

if TYPE_CHECKING:
    from yaqd.sim.workloads.graphs import GraphSet

CHOICES = ("tpch", "drawn", "history")
_DRAWN_SEED = 1
history_option = click.option(
    "--history",
    type=click.Path(path_type=Path, exists=True),
    multiple=True,
    metavar="PATH",
    help="Jobs that ran, a file or a folder, for --graphs history; may be repeated.",
)


def graphs_of(name: str, history: tuple[Path, ...] = ()) -> "GraphSet":
    """Return a set of graphs. `history`: files of jobs that ran, or folders of them.

    Raises CommandError where the recorded ones are not there, or not what they should be.
    """
    from yaqd.sim.workloads.drawn import WorkloadError
    from yaqd.sim.workloads.graph_history import history_graphs
    from yaqd.sim.workloads.graphs import draw_graphs
    from yaqd.sim.workloads.tpch import find_tpch, tpch

    if (name == "history") is not bool(history):
        raise CommandError("--graphs history and --history PATH belong together")
    if name == "drawn":
        return draw_graphs(_DRAWN_SEED)
    if name == "history":
        try:
            return history_graphs(list(history))
        except WorkloadError as error:
            raise CommandError(str(error)) from None
    try:
        return tpch(find_tpch())
    except WorkloadError as error:
        raise CommandError(f"{error}; --graphs drawn needs no files") from None


def need_numba() -> None:
    """Raise CommandError where the extra `ml` is not installed."""
    try:
        import numba  # noqa: F401
    except ImportError:
        raise CommandError("training needs numba: pip install 'yaqd[ml]'") from None
