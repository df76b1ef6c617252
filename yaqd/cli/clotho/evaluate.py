"""`yaq clotho eval`: weights against heuristics on the same arrivals."""

from pathlib import Path

import click

from yaqd.cli.clotho.files import read_weights
from yaqd.cli.clotho.graphs import CHOICES, graphs_of, history_option, need_numba
from yaqd.cli.exits import CommandError
from yaqd.cli.options import json_option
from yaqd.cli.output import print_json

_SETTINGS = ("stream", "batch", "paper", "cheap-moves", "estimates-stream", "estimates-batch")


@click.command("eval")
@click.argument("weights", required=False, type=click.Path(path_type=Path))
@click.option("--setting", "chosen", multiple=True, type=click.Choice(_SETTINGS), help="[default: stream and batch]")
@click.option("--graphs", "graphs_name", type=click.Choice(CHOICES), default="tpch", help="[default: tpch]")
@history_option
@click.option("--seeds", type=click.IntRange(2), metavar="N", help="Sequences [default: those that are reported].")
@click.option("--makespan", is_flag=True, help="Compare when the last job ends.")
@json_option
def evaluate(
    weights: Path | None,
    chosen: tuple[str, ...],
    graphs_name: str,
    history: tuple[Path, ...],
    seeds: int | None,
    makespan: bool,
    as_json: bool,
) -> None:
    """Run weights and every heuristic on the measured seeds. Without WEIGHTS: the shipped ones.

    Weighted fair sharing has its best exponent in hindsight, every heuristic its best options.

    \b
    Example:
      yaq clotho eval stages.npz --graphs drawn --setting batch --seeds 10
    """
    need_numba()
    from yaqd.policies.clotho.weights import WeightsError, unpack
    from yaqd.sim.stages.measuring import OTHERS, WEIGHTED, best_of, lower_by, means, run_weights
    from yaqd.sim.stages.settings import SETTINGS

    data, name = read_weights(weights)
    try:
        flat = unpack(data).flat()
    except WeightsError as error:
        raise CommandError(f"{name}: {error}") from None
    graphs = graphs_of(graphs_name, history)
    told = []
    for setting in chosen or ("stream", "batch"):
        measured = SETTINGS[setting]
        loads = measured.loads(graphs, seeds)
        ours = means(run_weights(flat, loads, measured.rules), makespan)
        for contenders in (WEIGHTED, OTHERS):
            best = best_of(contenders, loads, measured.rules, makespan)
            lower, spread = lower_by(ours, best.each)
            told.append(
                {
                    "setting": setting,
                    "seconds": round(float(ours.mean()), 3),
                    "against": best.name,
                    "theirs": round(float(best.each.mean()), 3),
                    "lower": round(lower, 4),
                    "error": round(spread, 4),
                }
            )
    if as_json:
        print_json({"weights": name, "rows": told})
        return
    for row in told:
        lower = float(str(row["lower"]))
        differs = f"{abs(lower):.1%} +- {row['error']:.1%} {'higher' if lower < 0 else 'lower'}"
        click.echo(f"{row['setting']}: {row['seconds']} s, {differs} than {row['against']} ({row['theirs']} s)")
