"""`yaq ml explore`."""

from pathlib import Path
from typing import Any

import click

from yaqd.cli.ended import clears_up
from yaqd.cli.options import FiniteFloat, assignments, json_option, quiet_option, terms_options, with_conf, words
from yaqd.config import Configuration

_LEARNING = ("script", "objective", "train", "command")


@click.command("explore")
@click.argument("script", metavar="SCRIPT[:FUNCTION]")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- ARGUMENTS]")
@click.option("--metric", required=True, metavar="NAME", help="What is looked for, by its name in the reports.")
@click.option("--mode", type=click.Choice(("max", "min")), default="max", show_default=True, help="Which is better.")
@click.option("--target", type=FiniteFloat(), metavar="X",
              help="End when a trial is there [default: unknown; it rises when it is reached].")  # fmt: skip
@click.option("--solved", default="", metavar="CONDITION",
              help="End when a trial's last reports fulfil it: 'mean(100) >= 200'; min, max, last.")  # fmt: skip
@click.option("--limit", "limits", multiple=True, metavar="CONDITION",
              help="Another metric that must hold at the target: 'memory_mb <= 512'; may be repeated.")  # fmt: skip
@click.option("--kill", type=FiniteFloat(), metavar="X",
              help="A trial whose metric stays worse has learnt nothing, such as 0.15 of ten classes.")  # fmt: skip
@click.option("--lower", type=FiniteFloat(), metavar="X", help="The metric is never lower.")
@click.option("--upper", type=FiniteFloat(), metavar="X", help="The metric is never higher.")
@click.option("--space", type=click.Path(path_type=Path), metavar="FILE", help="The hyperparameters, see above.")
@click.option("--generator", type=click.Choice(("random", "grid", "file", "tpe", "gp")), default="random",
              show_default=True, help="What proposes configurations; tpe and gp are Optuna's.")  # fmt: skip
@click.option("--configurations", type=click.Path(path_type=Path), metavar="FILE",
              help="Of the generator file: a JSON object a line.")  # fmt: skip
@click.option("--guided", is_flag=True, help="Begin where a model over the hyperparameters promises most.")
@click.option("--trials", type=click.IntRange(1), default=100, show_default=True, help="Configurations at most.")
@click.option("--epochs", type=click.IntRange(1), default=100, show_default=True, help="Reports of a trial at most.")
@click.option("--slots", type=click.IntRange(1, 10_000), default=4, show_default=True, help="Trials at once.")
@click.option("--max-time", metavar="TIME", help="End after it: seconds, or 90m, 24h.")
@click.option("--policy", default="index", show_default=True, metavar="NAME[:OPTION=X,..]",
              help="Which trial runs: index, pop, earlyterm, bandit, default, asha-stop, asha-promote, hyperband, "
              "median, patience, or an entry point. Such as asha-stop:grace=3,eta=3.")  # fmt: skip
@click.option("--predictor", default="library", show_default=True, metavar="NAME",
              help="What index, pop and earlyterm ask: library, walkers (POP's, slow), or an entry point.")  # fmt: skip
@click.option("--boundary", type=click.IntRange(1), default=10, show_default=True,
              help="Epochs between two looks, of pop, bandit and earlyterm.")  # fmt: skip
@click.option("--level", default="", metavar="'A SD R SD'",
              help="What is believed of the metric: its start and rise, each with a deviation.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Of configurations and grid order.")
@click.option("--style", type=click.Choice(_LEARNING), help="How the program joins [default: as it looks].")
@click.option("--command", "is_command", is_flag=True,
              help="SCRIPT is any program: values go as --NAME VALUE, or where {NAME} stands.")  # fmt: skip
@click.option("--pattern", default="", metavar="REGEX",
              help="Finds the metric in a command's output [default: NAME=NUMBER or NAME: NUMBER].")  # fmt: skip
@click.option("--local", is_flag=True, help="Explore on this machine, without a cluster.")
@click.option("--logs", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
              help="With --local: keep what the trials print.")  # fmt: skip
@click.option("--export", "exported", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="With --local: write the trials as JSON lines at the end.")  # fmt: skip
@click.option("--memory", "memory_mb", type=click.IntRange(min=1), metavar="MB", help="Of each slot.")
@click.option("--files", multiple=True, metavar="PATHS", help="Files for the containers: PATH or PATH#NAME, commas.")
@click.option("--py-files", multiple=True, metavar="PATHS", help=".py, .zip or .egg files to import from, likewise.")
@click.option("--env", "environment", multiple=True, metavar="NAME=VALUE", help="Environment of the program.")
@click.option("--queue", help="Queue to submit to.")
@click.option("--name", help="Name of the exploration [default: the script's].")
@click.option("--no-wait", is_flag=True, help="Print the application's id and return.")
@quiet_option
@json_option
@clears_up
@with_conf
@terms_options
@click.pass_context
def explore(
    ctx: click.Context,
    /,
    conf: Configuration,
    script: str,
    arguments: tuple[str, ...],
    local: bool,
    logs: Path | None,
    exported: Path | None,
    memory_mb: int | None,
    files: tuple[str, ...],
    py_files: tuple[str, ...],
    environment: tuple[str, ...],
    queue: str | None,
    name: str | None,
    no_wait: bool,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Find good hyperparameters: train many configurations of a program, each a trial, and give slots to those whose
    learning curves promise the target soonest. Others wait, and come back when nothing better does.

    \b
    space.toml:
      rate = { type = "float", low = 1e-4, high = 1.0, log = true }
      layers = { type = "int", low = 1, high = 4 }
      activation = ["relu", "tanh"]
      batch = 32

    \b
    A program joins in one of four ways:
      script       trial.params["rate"] and report(iteration=.., accuracy=.., checkpoint=f) of yaqd.ml
      objective    objective(trial), as Optuna calls it; its own suggestions are the space
      train        train(config), as Ray Tune calls it; it reports with yaqd.ml.report
      command      any program: --command, and the metric by a pattern on its output

    \b
    Examples:
      yaq ml explore train.py --space space.toml --metric accuracy --target 0.77 --slots 4 --max-time 24h
      yaq ml explore objective.py --metric loss --mode min --lower 0 --upper 3 --target 0.1 --local
      yaq ml explore --command --space space.toml --metric accuracy --files train.sh -- ./train.sh --rate {rate}
    """
    from yaqd.cli.ml.explore.asked import asked

    for option, path in (("--logs", logs), ("--export", exported)):
        if path is not None and not local:
            raise click.UsageError(f"{option} is for --local", ctx)
    given = asked(script, arguments, **options)
    if local:
        from yaqd.cli.ml.explore.here import explore_here

        refuse_of_clusters(ctx, no_wait=no_wait, queue=queue, memory=memory_mb, files=files)
        ctx.exit(
            explore_here(
                conf,
                given,
                name or Path(script).stem,
                py_files=words(py_files),
                environment=assignments("--env", environment),
                logs=logs,
                exported=exported,
                as_json=as_json,
                is_quiet=quiet,
            )
        )
    from yaqd.cli.ml.explore.submit import submit

    ctx.exit(
        submit(
            conf,
            given,
            memory_mb=memory_mb,
            files=words(files),
            py_files=words(py_files),
            environment=assignments("--env", environment),
            queue=queue,
            name=name,
            no_wait=no_wait,
            as_json=as_json,
            is_quiet=quiet,
        )
    )


def refuse_of_clusters(ctx: click.Context, **given: object) -> None:
    """Refuse options with --local that mean something on a cluster alone."""
    for name, value in given.items():
        if value:
            raise click.UsageError(f"--{name.replace('_', '-')} is for a cluster: leave it out with --local", ctx)
