"""`yaq clotho train`: weights from simulation."""

import shlex
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from yaqd.cli.clotho.files import check_place, read_weights
from yaqd.cli.clotho.graphs import CHOICES, graphs_of, history_option, need_numba
from yaqd.cli.ended import clears_up, exit_code_of
from yaqd.cli.exits import CommandError
from yaqd.cli.options import FiniteFloat, json_option, quiet_option
from yaqd.cli.output import print_json

if TYPE_CHECKING:
    from yaqd.policies.curves.samples import Floats, Ints
    from yaqd.sim.stages.training.evolution import SearchTerms
    from yaqd.sim.stages.training.gradient import GradientTerms


@click.command("train")
@click.option(
    "--trainer",
    "trainer_name",
    type=click.Choice(("evolution", "gradient")),
    default="evolution",
    help="Evolution strategies, or policy gradient as in Decima's paper [default: evolution].",
)
@click.option("--output", required=True, type=click.Path(path_type=Path), metavar="FILE", help="Weights to write.")
@click.option(
    "--checkpoint", type=click.Path(path_type=Path), metavar="FILE", help="Once a minute [default: FILE.checkpoint]."
)
@click.option("--resume", is_flag=True, help="Go on from the checkpoint, to the same bits.")
@click.option("--minutes", type=FiniteFloat(0), default=60.0, metavar="N", help="How long [default: 60].")
@click.option("--generations", type=click.IntRange(1), metavar="N", help="End after so many, if that is sooner.")
@click.option("--cores", type=click.IntRange(1, 256), default=1, metavar="N", help="Processes [default: 1].")
@click.option("--seed", type=click.IntRange(0, 10_000), default=1, metavar="N", help="[default: 1]")
@click.option("--graphs", "graphs_name", type=click.Choice(CHOICES), default="tpch", help="[default: tpch]")
@history_option
@click.option("--from-nothing", is_flag=True, help="Begin without the scores of a heuristic.")
@click.option("--start", type=click.Path(path_type=Path, exists=True), metavar="FILE", help="Begin with these weights.")
@click.option("--makespan", is_flag=True, help="Make the last job end soon, not the mean.")
@click.option(
    "--slots",
    type=click.IntRange(0, 10_000),
    default=0,
    metavar="N",
    help="So many where 50 are not measured [default: many sizes].",
)
@click.option(
    "--linear",
    type=click.IntRange(0),
    metavar="N",
    help="Generations of evolution that move linear scores alone, before all weights [default: 200].",
)
@click.option(
    "--rate",
    type=FiniteFloat(0, 10, min_open=True),
    metavar="X",
    help="Size of evolution's first steps; small ones settle weights that are nearly there [default: 0.2].",
)
@click.option("--without-query", type=int, multiple=True, metavar="N", help="Leave a query out; may be repeated.")
@click.option("--without-size", type=int, multiple=True, metavar="GB", help="Leave an input size out.")
@quiet_option
@json_option
@clears_up
def train(
    trainer_name: str,
    output: Path,
    checkpoint: Path | None,
    resume: bool,
    minutes: float,
    generations: int | None,
    cores: int,
    seed: int,
    graphs_name: str,
    history: tuple[Path, ...],
    from_nothing: bool,
    start: Path | None,
    makespan: bool,
    slots: int,
    linear: int | None,
    rate: float | None,
    without_query: tuple[int, ...],
    without_size: tuple[int, ...],
    quiet: bool,
    as_json: bool,
) -> None:
    """Train the network; held-out numbers as it goes, a checkpoint a minute.

    Evolution strategies move all weights at random and keep what does better. Policy gradient, as in Decima's paper,
    draws choices and makes those likelier that did better. Both write weights for the same network.

    Each generation is tried on batches and streams as they are measured, and on sequences of anything. There slots,
    costs of moves, mixes, loads and errors of estimates are drawn anew. Evolution has ten jobs on a hundred slots
    besides, and sequences whose tasks run as long on any number of slots. Held-out numbers are parts of what fair
    sharing takes.

    \b
    Examples:
      yaq clotho train --graphs drawn --output stages.npz --minutes 60 --cores 2
      yaq clotho train --graphs drawn --output stages.npz --minutes 30 --resume
    """
    need_numba()
    if start is not None and from_nothing:
        raise CommandError("--start and --from-nothing exclude each other: leave one out")
    saved = checkpoint or output.with_name(f"{output.name}.checkpoint")
    check_place("--output", output)
    check_place("--checkpoint", saved)
    if saved.resolve() == output.resolve():
        raise CommandError(f"--output and --checkpoint are both {saved}: give each a file of its own")
    import numpy as np

    from yaqd.sim.stages.training.checkpoint import CheckpointError, write_whole
    from yaqd.sim.stages.training.trainer import Trainer

    terms = _terms(trainer_name, seed, makespan, slots, {"linear": linear, "rate": rate})
    graphs = graphs_of(graphs_name, history)
    among = np.flatnonzero(~np.isin(graphs.query, without_query) & ~np.isin(graphs.size, without_size))
    for option, given, known in (
        ("--without-query", without_query, graphs.query),
        ("--without-size", without_size, graphs.size),
    ):
        for one in given:
            if one not in known:
                raise CommandError(f"{option} {one}: no graph has it; there are {_listed(known)}")
    if not len(among):
        raise CommandError("no graph is left: --without-query and --without-size leave all of them out")
    told = (lambda line: None) if quiet or as_json else (lambda line: click.echo(line, err=True))
    trainer = Trainer(
        graphs,
        among,
        terms,
        saved,
        time.monotonic,
        told,
        imitates=not from_nothing,
        cores=cores,
    )
    try:
        if resume:
            trainer.resume(None if start is None else _start(start)[0])
        else:
            trainer.begin(*_start(start))
    except CheckpointError as error:
        raise CommandError(str(error)) from None
    if generations is not None and generations < trainer.state.generation:
        raise CommandError(f"--generations {generations}: {saved} has {trainer.state.generation} already")
    try:
        trainer.run(minutes * 60.0, generations)
    except KeyboardInterrupt as end:
        trainer.save()
        done = f"stopped after {trainer.state.generation} generations"
        raise CommandError(f"{done}: the same command with --resume goes on from {saved}", exit_code_of(end)) from None
    data = trainer.weights(shlex.join(["yaq", *sys.argv[1:]]))
    write_whole(output, data)
    last = trainer.curve[-1]
    if as_json:
        print_json({"output": str(output), "bytes": len(data), "curve": trainer.curve})
    else:
        click.echo(f"{output}: {len(data)} bytes after {last['generation']:.0f} generations")


def _terms(
    trainer: str, seed: int, makespan: bool, slots: int, of_evolution: Mapping[str, float | None]
) -> "SearchTerms | GradientTerms":
    """Return how the trainer goes about it. Raises CommandError for an option of the other one."""
    from yaqd.sim.stages.training.evolution import SearchTerms
    from yaqd.sim.stages.training.gradient import GradientTerms

    shared: dict[str, Any] = {"seed": seed, "makespan": makespan, "slots": slots}
    if makespan:
        # in a stream the last job ends when it comes, whoever schedules
        shared["streams"] = 0
    given: dict[str, Any] = {name: value for name, value in of_evolution.items() if value is not None}
    if trainer == "evolution":
        return SearchTerms(**shared, **given)
    if given:
        raise CommandError(f"--{next(iter(given))} is an option of --trainer evolution")
    return GradientTerms(**shared)


def _listed(numbers: "Ints") -> str:
    return ", ".join(str(one) for one in sorted(set(numbers.tolist())))


def _start(path: Path | None) -> "tuple[Floats | None, Mapping[str, Any]]":
    """Return weights to begin with, as one array, and what they tell of themselves. Raises CommandError."""
    if path is None:
        return None, {}
    from yaqd.policies.clotho.weights import WeightsError, unpack

    try:
        found = unpack(read_weights(path)[0])
    except WeightsError as error:
        raise CommandError(f"{path}: {error}") from None
    return found.flat(), found.told
