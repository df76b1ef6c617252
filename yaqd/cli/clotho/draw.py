"""`yaq clotho draw`: who has how many executors, over time."""

from pathlib import Path

import click

from yaqd.cli.clotho.files import read_weights
from yaqd.cli.clotho.graphs import CHOICES, graphs_of, history_option
from yaqd.cli.exits import CommandError
from yaqd.cli.options import json_option
from yaqd.cli.output import print_json

_HEURISTICS = ("fifo", "shortest", "fair", "weighted-fair", "packing", "trouble", "capped")


@click.command("draw")
@click.argument("weights", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, metavar="FILE", help="A .png, .svg or .pdf file."
)
@click.option(
    "--beside", multiple=True, type=click.Choice(_HEURISTICS), help="A heuristic; may be repeated [default: fair]."
)
@click.option("--jobs", type=click.IntRange(1, 200), default=10, show_default=True, help="Jobs that come at once.")
@click.option("--slots", type=click.IntRange(1, 10_000), default=100, show_default=True)
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=30_000, show_default=True)
@click.option("--graphs", "graphs_name", type=click.Choice(CHOICES), default="tpch", help="[default: tpch]")
@history_option
@json_option
def draw(
    weights: tuple[Path, ...],
    out: Path,
    beside: tuple[str, ...],
    jobs: int,
    slots: int,
    seed: int,
    graphs_name: str,
    history: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Draw the same jobs under weights and heuristics, one panel each. Without WEIGHTS: the shipped ones.

    \b
    Example:
      yaq clotho draw stages.npz --graphs drawn --beside capped --out jobs.png
    """
    from yaqd.policies.clotho.facts import StagePolicy
    from yaqd.policies.clotho.learned import Learned
    from yaqd.policies.clotho.policies import STAGES
    from yaqd.policies.clotho.weights import WeightsError, unpack
    from yaqd.sim.experiments.plots import NoPlots
    from yaqd.sim.stages import drawing
    from yaqd.sim.stages.rules import Rules
    from yaqd.sim.workloads.graphs import batch

    load, rules = batch(graphs_of(graphs_name, history), seed, jobs=jobs), Rules(slots)
    policies: list[tuple[str, StagePolicy]] = []
    for path in weights or (None,):
        data, name = read_weights(path)
        try:
            unpack(data)
        except WeightsError as error:
            raise CommandError(f"{name}: {error}") from None
        policies.append((f"trained ({name})", Learned(data)))
    policies += [(name, STAGES[name]()) for name in beside or ("fair",)]
    panels = []
    for name, policy in policies:
        try:
            panels.append(drawing.watched(name, load, policy, rules))
        except ValueError as error:
            raise CommandError(f"{name}: {error}") from None
    try:
        drawing.draw(panels, slots, out)
    except NoPlots as error:
        raise CommandError(str(error)) from None
    except (OSError, ValueError) as error:
        raise CommandError(f"--out {out}: {error}") from None
    if as_json:
        shown = [{"policy": one.name, "mean_s": one.mean_s, "makespan_s": one.makespan_s} for one in panels]
        print_json({"out": str(out), "panels": shown})
        return
    for one in panels:
        click.echo(f"{one.name}: mean {one.mean_s:.1f} s, last job ends after {one.makespan_s:.1f} s")
    click.echo(f"wrote {out}")
