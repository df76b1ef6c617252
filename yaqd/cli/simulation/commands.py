"""`yaq sim`: the simulated cluster. Everything heavy is imported when a command runs."""

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from yaqd.cli.exits import CommandError
from yaqd.cli.options import FiniteFloat, json_option
from yaqd.cli.output import print_json, print_table
from yaqd.cli.shell.completing import experiments
from yaqd.cli.simulation.curves import curve_options, with_curves
from yaqd.cli.simulation.line import line
from yaqd.cli.simulation.study import study
from yaqd.cli.simulation.world import in_world, world_of, world_options

if TYPE_CHECKING:
    from yaqd.sim.experiments import Experiment

#: a JVM on a cold node, as stock clusters start them
_STOCK_START_S = 1.0
#: our nodes' prepared process
_OUR_START_S = 0.1
#: what the network takes one way, in a rack: `yaqd.sim.shape.NETWORK_S`, which is not imported for a help page
NETWORK_S = 0.001
#: between two reports of a node where nothing is configured: yarn.resourcemanager.nodemanagers.heartbeat-interval-ms
HEARTBEAT_S = 1.0

_HELP = """Try a policy on a simulated cluster before a real one has it.

The ResourceManager's scheduler and the nodes' queues in it are the live ones; heartbeats, polling, network and the
tasks' time are simulated. 185 Hive queries on 80 nodes take seconds.

\b
  yaq sim list                                      what there is
  yaq sim parameters yaq-c                          what a system can be told
  yaq sim run yaq-c --out /tmp/figures              an experiment of the paper, with figures
  yaq sim compare --workload hive-ms --system yarn --system yaq-c --system yaq-c,order=lrtf,bound=8
  yaq sim replay ~/c/staging/history --nodes 8 --slots 8 --system yaq-c
"""


@click.group(help=_HELP)
def sim() -> None:
    pass


sim.add_command(study)
sim.add_command(line)


@sim.command("list")
@json_option
def list_all(as_json: bool) -> None:
    """List experiments, workloads and systems.

    \b
    Example:
      yaq sim list
    """
    from yaqd.sim.experiments import EXPERIMENTS
    from yaqd.sim.shape import SYSTEMS
    from yaqd.sim.workloads import WORKLOADS

    if as_json:
        print_json(
            {
                "experiments": {e.name: {"title": e.title, "source": e.source} for e in EXPERIMENTS.values()},
                "workloads": {name: kind.title for name, kind in WORKLOADS.items()},
                "systems": list(SYSTEMS),
            }
        )
        return
    rows: list[tuple[str, str]] = [(e.name, f"{e.title} ({e.source})") for e in EXPERIMENTS.values()]
    print_table(("experiment", "what it shows"), rows, empty="")
    click.echo()
    print_table(("workload", "its tasks"), [(name, kind.title) for name, kind in WORKLOADS.items()], empty="")
    click.echo()
    print_table(("system", "its parameters"), [(name, _parameters(name)) for name in SYSTEMS], empty="")


@sim.command("parameters")
@click.argument("system", required=False, metavar="[SYSTEM]")
@json_option
def parameters(system: str | None, as_json: bool) -> None:
    """Explain what systems can be told, all of them or one.

    As `--system NAME,KEY=VALUE,...` of `compare` and `replay`. The same table is in docs/simulator.md.

    \b
    Example:
      yaq sim parameters yaq-d
    """
    from yaqd.cli.simulation.parameters import rows
    from yaqd.sim.shape import SYSTEMS

    if system is not None and system not in SYSTEMS:
        raise CommandError(f"there is no system {system!r}; there are {', '.join(SYSTEMS)}")
    found = list(rows(system))
    if as_json:
        keys = ("parameter", "systems", "unsaid", "meaning")
        print_json([dict(zip(keys, row, strict=True)) for row in found])
        return
    for name, systems, unsaid, meaning in found:
        click.echo(f"{name} [{unsaid}]{'' if system else f': {systems}'}")
        click.echo(textwrap.indent(textwrap.fill(meaning, 96, break_on_hyphens=False), "    "))


def _parameters(system: str) -> str:
    from yaqd.cli.simulation.systems import PARAMETERS

    return ", ".join(PARAMETERS[system])


@sim.command("run")
@click.argument("name", shell_complete=experiments)
@click.option("--seeds", type=click.IntRange(1, 1000), metavar="N", help="How many seeds [default: the experiment's].")
@click.option("--first-seed", type=click.IntRange(0), default=1, show_default=True, metavar="N", help="The first one.")
@click.option("--quick", "is_quick", is_flag=True, help="A tenth of the nodes and jobs, one seed: does it run at all?")
@click.option("--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes to run it in.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Write JSON, PNG and SVG to this folder.")
@curve_options
@world_options
@json_option
def run(
    name: str,
    seeds: int | None,
    first_seed: int,
    is_quick: bool,
    workers: int,
    out: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Run one of the paper's experiments.

    Reported against measured, and a plain verdict for each row.

    NAME as `yaq sim list` shows it, or `all`.

    Training jobs (slaq-) follow recorded losses. With --curves they follow others: `slaq-curves` is made for them. A
    job has as many iterations as its file has steps, up to 100, and the same work in the mean.

    \b
    Example:
      yaq sim run yaq-ordering --quick
      yaq sim run slaq-paper --curves held-out --first-seed 201
      yaq sim run slaq-curves --curves ~/DPL/data/taskset --curves mine.json
      yaq sim run yaq-utilization --seeds 3 --out /tmp/figures
      yaq sim run all --workers 2 --json > results.json
    """
    from yaqd.cli.simulation.screen import show
    from yaqd.sim.experiments import EXPERIMENTS, quick
    from yaqd.sim.experiments.exploring import missing_pool
    from yaqd.sim.experiments.staging import missing_graphs

    world = world_of(options)
    chosen = with_curves(list(EXPERIMENTS.values()) if name == "all" else [_experiment(name)], options)
    values: list[Any] = []
    for experiment in chosen:
        missing = (missing_pool(experiment.cases) or missing_graphs(experiment.cases)) if name == "all" else None
        if missing is not None:
            click.echo(f"{experiment.name} is left out: {missing}", err=True)
            continue
        small = in_world(quick(experiment) if is_quick else experiment, world)
        numbers = range(first_seed, first_seed + (seeds or small.seeds))
        values.append(show(small, numbers, is_quick=is_quick, workers=workers, out=out, as_json=as_json))
    if as_json:
        print_json(values if name == "all" else values[0])


def _experiment(name: str) -> "Experiment":
    import difflib

    from yaqd.sim.experiments import EXPERIMENTS

    if name not in EXPERIMENTS:
        near = difflib.get_close_matches(name, EXPERIMENTS, 1)
        hint = f"; did you mean {near[0]}?" if near else "; `yaq sim list` shows them"
        raise CommandError(f"there is no experiment {name!r}{hint}")
    return EXPERIMENTS[name]


def _cluster_options(start: float, *, of_history: bool = False) -> Callable[[Any], Any]:
    """The options of a cluster's shape; `start` is how long a container's start takes when nothing is said, s.
    `of_history`: its size is the recorded one's."""
    nodes, slots = (None, None) if of_history else (80, 4)
    options = (
        click.option("--nodes", type=click.IntRange(1, 100_000), default=nodes,
                     show_default=not of_history or "those that ran tasks by the history, 80 where it does not say",
                     help="Nodes."),
        click.option("--slots", type=click.IntRange(1, 10_000), default=slots,
                     show_default=not of_history or "tasks that ran at a time on one node, 4 where it does not say",
                     help="Slots of each."),
        click.option("--heartbeat", type=FiniteFloat(0.01, 3600), default=HEARTBEAT_S, show_default=True,
                     metavar="S", help="Between two reports of a node; the paper's have 3."),
        click.option("--polling", type=FiniteFloat(0.001, 3600), default=1.0, show_default=True, metavar="S",
                     help="Between two polls of a job manager."),
        click.option("--network", type=FiniteFloat(0, 60), default=NETWORK_S, show_default=True, metavar="S",
                     help="What a message takes, one way."),
        click.option("--start", type=FiniteFloat(0, 600), default=start, show_default=True, metavar="S",
                     help="From a free slot to a running task, of a container that did not queue."),
        click.option("--seeds", type=click.IntRange(1, 1000), default=3, show_default=True, metavar="N",
                     help="Seeds to run each system with."),
        click.option("--system", "systems", multiple=True, required=True, metavar="NAME[,KEY=VALUE...]",
                     help="A system and its parameters; may be repeated, the first one is what others are held to. "
                     "`yaq sim parameters` explains all keys. yaq-c is as a live cluster: out_of_turn=on,at_asks=on."),
        click.option("--out", type=click.Path(path_type=Path, file_okay=False),
                     help="Write JSON, PNG and SVG to this folder."),
    )  # fmt: skip

    def add(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return add


@sim.command("shuffle")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, metavar="N", help="Of the maps' times.")
@click.option("--shapes", type=click.IntRange(1, 10_000), default=200, show_default=True, metavar="N",
              help="Random jobs that the automatic choice is checked with.")  # fmt: skip
@click.option("--swim", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
              help="Check it with a SWIM trace (.tsv) as well.")  # fmt: skip
@click.option("--jobs", type=click.IntRange(1, 100_000), default=1000, show_default=True, metavar="N",
              help="Of the trace.")  # fmt: skip
@click.option("--plots", type=click.Path(file_okay=False, path_type=Path), metavar="DIR",
              help="Draw the figures into this folder.")  # fmt: skip
@json_option
def shuffle(seed: int, shapes: int, swim: Path | None, jobs: int, plots: Path | None, as_json: bool) -> None:
    """Model merging of map outputs: the paper's figures beside the model's.

    With and without merging and best effort, more and more tasks, spilling against shuffling, where merging stops to
    pay, and how often the automatic choice is right.

    \b
    Example:
      yaq sim shuffle --shapes 20
    """
    from yaqd.sim import shuffle_figures as model

    figures = [*model.headline(seed), *model.growing(), *model.spilling(), *model.paying(seed)]
    checked = model.check(shapes, seed)
    of_trace = _checked_with(swim, jobs, seed) if swim is not None else None
    if plots is not None:
        _draw_shuffle(plots, seed, list(model.paying(seed)))
    if as_json:
        print_json(model.as_json(figures, checked, of_trace))
        return
    rows = [
        (f.what, "-" if f.reported is None else _number(f.reported), _number(f.modelled), f.unit or "-")
        for f in figures
    ]
    print_table(("figure", "reported", "modelled", "unit"), rows, empty="")
    for found, what in ((checked, "random jobs"), (of_trace, "jobs of the trace")):
        if found is not None:
            click.echo(
                f"\nautomatic: within 5 % of the best in {found.right} of {found.shapes} {what}, at worst "
                f"{found.worst:.2f}x the best; {found.alone} left alone, {found.lost} made slower, "
                f"{found.saved_s:,.0f} s saved of {found.most_s:,.0f}"
            )
            always = ", ".join(f"{files} {seconds:,.0f} s" for files, seconds in found.always_s.items())
            click.echo(
                f"  never merging is as near the best in {found.off_right}, always merging in {found.always_right} at "
                f"most and saves, by files: {always}"
            )
            click.echo(f"  {len(found.paying)} would gain more than 5 % by merging, {found.caught} of them were merged")
    if of_trace is not None:
        gains = [
            (f"{p.job.maps} x {p.job.partitions}", f"{p.job.size / 1e9:,.0f} GB", f"{p.unmerged_s:.0f} s",
             f"{p.best_s:.0f} s", f"{p.chosen_s:.0f} s", str(p.policy))
            for p in of_trace.paying
        ]  # fmt: skip
        print_table(("gains", "shuffle", "not merged", "at best", "as chosen", "choice"), gains, empty="")


def _number(value: float) -> str:
    """To four digits, and never with an exponent where it is large."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _checked_with(trace: Path, jobs: int, seed: int) -> Any:
    from yaqd.sim.shuffle_figures import check_swim
    from yaqd.sim.workloads import WorkloadError

    try:
        return check_swim(trace, jobs, seed)
    except (WorkloadError, OSError) as error:
        raise CommandError(str(error)) from None


def _draw_shuffle(folder: Path, seed: int, paying: list[Any]) -> None:
    from yaqd.sim.experiments.plots import NoPlots
    from yaqd.sim.shuffle_plots import draw

    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in draw(folder, seed, paying):
            click.echo(f"written: {path}", err=True)
    except (NoPlots, OSError) as error:
        raise CommandError(str(error)) from None


@sim.command("compare")
@click.option("--workload", required=True, metavar="NAME|FILE",
              help="One that `yaq sim list` names, or a trace: SWIM (.tsv), SLS or rumen (.json).")  # fmt: skip
@click.option("--jobs", type=click.IntRange(1, 1_000_000), default=185, show_default=True, help="Jobs to run.")
@click.option("--load", type=FiniteFloat(0.001, 100), default=0.8, show_default=True,
              help="Part of the slots that arriving jobs ask for, in the long run.")  # fmt: skip
@click.option("--burst", is_flag=True, help="All jobs at once instead; see the parameter jobs_at_once.")
@_cluster_options(_STOCK_START_S)
@world_options
@json_option
def compare(workload: str, jobs: int, load: float, burst: bool, as_json: bool, **options: Any) -> None:
    """Run several systems on one workload.

    The same jobs and the same luck for each of them.

    \b
    Example:
      yaq sim compare --workload gridmix-ms --slots 10 --system yarn --system yaq-c,bound=10,order=lrtf
      yaq sim compare --workload FB-2009.tsv --jobs 500 --system yarn-opportunistic --system yaq-c
      yaq sim compare --workload hive-ms --noise 0.5 --speeds 1,0.5 --fail 3@60+120 --system yarn --system yaq-d
    """
    from yaqd.cli.simulation.screen import compared
    from yaqd.cli.simulation.systems import comparison, recorded
    from yaqd.sim.workloads import WORKLOADS, Arrivals, Drawn

    if workload in WORKLOADS:
        arrivals = Arrivals("burst") if burst else Arrivals("poisson", load)
        drawn, trace = Drawn(workload, jobs, arrivals), None
    else:
        trace = recorded(Path(workload), jobs)
        drawn = Drawn(trace.name, len(trace.jobs), Arrivals("recorded"))
    experiment = in_world(comparison("compare", drawn, **_shape_of(options)), world_of(options))
    compared(experiment, options, trace, as_json)


@sim.command("replay")
@click.argument("history", nargs=-1, required=True, type=click.Path(path_type=Path))
@_cluster_options(_OUR_START_S, of_history=True)
@world_options
@json_option
def replay(history: tuple[Path, ...], as_json: bool, **options: Any) -> None:
    """Run a real cluster's jobs again.

    What if it had had other policies, or fewer nodes? Where nobody says how large it is, it is as large as the history
    shows: what ran nothing is not in it.

    HISTORY: job history files (`job_*.jsonl` of our job manager, `.jhist` as JSON of MapReduce), or folders that have
    them, if not in themselves then below. Our job managers write them into the folder of `yaq.job.history-dir`.

    \b
    Example:
      yaq sim replay ~/c/staging/history --system yarn --system yaq-c
      yaq sim replay ~/c/staging/history --nodes 4 --slots 8 --system yarn --system yaq-c
    """
    import dataclasses

    from yaqd.cli.simulation.screen import compared
    from yaqd.cli.simulation.systems import comparison, sized
    from yaqd.sim.workloads import Arrivals, Drawn
    from yaqd.sim.workloads.history import read_history

    trace = read_history(history)
    drawn = Drawn(trace.name, len(trace.jobs), Arrivals("recorded"))
    shape, notes = sized(_shape_of(options), trace.seen)
    experiment = dataclasses.replace(comparison("replay", drawn, **shape), notes=notes)
    experiment = in_world(experiment, world_of(options))
    compared(experiment, options, trace, as_json)


@sim.command("replay-decisions")
@click.argument("file", type=click.Path(path_type=Path))
@json_option
def replay_decisions(file: Path, as_json: bool) -> None:
    """Play a live scheduler's events again, and compare what it decides.

    Does this version decide as the one that ran? The first event that leads to other decisions is shown, and the exit
    code is 1.

    FILE: what a ResourceManager has written whose `yaq.rm.scheduler.record` names it, compressed or not.

    \b
    Example:
      yaq sim replay-decisions /var/log/yaq/scheduler.jsonl.gz
    """
    from yaqd.cli.simulation.decisions import show_replayed

    show_replayed(file, as_json)


def _shape_of(options: dict[str, Any]) -> dict[str, Any]:
    return {name: options[name] for name in ("nodes", "slots", "heartbeat", "polling", "network", "start", "systems")}
