"""What `--graphs` names: recorded query graphs, or drawn ones."""

from typing import TYPE_CHECKING

from yaqd.cli.exits import CommandError

if TYPE_CHECKING:
    from yaqd.sim.workloads.graphs import GraphSet

CHOICES = ("tpch", "drawn")
_DRAWN_SEED = 1


def graphs_of(name: str) -> "GraphSet":
    """Return a set of graphs. Raises CommandError where the recorded ones are not there, or not what they should be."""
    from yaqd.sim.workloads.drawn import WorkloadError
    from yaqd.sim.workloads.graphs import draw_graphs
    from yaqd.sim.workloads.tpch import find_tpch, tpch

    if name == "drawn":
        return draw_graphs(_DRAWN_SEED)
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
