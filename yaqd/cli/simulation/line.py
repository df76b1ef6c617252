"""`yaq sim line`: from how many nodes on queues at nodes pay, with what a ResourceManager's calls take."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from yaqd.cli.exits import FAILED, CommandError
from yaqd.cli.options import FiniteFloat, json_option
from yaqd.cli.output import print_json, print_table

_HELP = """Find from how many nodes on queues at nodes pay, where the ResourceManager's own time counts.

Heartbeats and masters' calls are served one after another, and each takes what was measured over real RPC. So answers
come the later the busier it is. What counts is which part of the slots works while masters want more than can run.

Costs are those of one machine. `python -m benchmarks.rm_bound --costs FILE` measures those of another.

\b
Example:
  yaq sim line --workers 2 --out /tmp/line
  yaq sim line --nodes 2000 --task 1 --slots 1
  yaq sim line --poll 0.1
"""


def _several(flag: str, kind: Any, default: str, what: str) -> Callable[[Any], Any]:
    return click.option(flag, flag.strip("-").replace("-", "_"), type=kind, multiple=True,
                        help=f"{what}; may be repeated [default: {default}].")  # fmt: skip


@click.command("line", help=_HELP)
@_several("--nodes", click.IntRange(1, 20_000), "100 to 10000", "Nodes")
@_several("--task", FiniteFloat(0.01, 3600), "1, 5 and 20", "How long tasks run, s")
@_several("--heartbeat", FiniteFloat(0.05, 60), "1 and 3", "Between two heartbeats of a node, s")
@click.option("--slots", type=click.IntRange(1, 1000), default=4, show_default=True, help="Slots of a node.")
@click.option("--poll", type=FiniteFloat(0.01, 60), default=1.0, show_default=True, help="Between masters' calls, s.")
@click.option("--start", type=FiniteFloat(0, 60), default=0.1, show_default=True,
              help="Until a container's process runs that did not wait at its node, s.")  # fmt: skip
@click.option("--cores", type=click.IntRange(1, 64), default=1, show_default=True,
              help="Cores of the ResourceManager that serve calls.")  # fmt: skip
@click.option("--warm", type=FiniteFloat(1, 600), default=10.0, show_default=True,
              help="Before slots are looked at, s. A full core takes a minute to settle.")  # fmt: skip
@click.option("--costs", type=click.Path(path_type=Path, dir_okay=False, exists=True), metavar="FILE",
              help="What calls take [default: as shipped].")  # fmt: skip
@click.option("--seeds", type=click.IntRange(1, 100), default=1, show_default=True, help="Seeds of each cell.")
@click.option("--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes to run it in.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
              help="Folder for line.json and the plot.")  # fmt: skip
@click.option("--quick", "is_quick", is_flag=True, help="Clusters of a tenth of the size: does it run at all?")
@json_option
def line(as_json: bool, **options: Any) -> None:
    from yaqd.cli.simulation.screen import make_folder, progress_bar
    from yaqd.sim.experiments.runner import run_all
    from yaqd.sim.line.cells import HEARTBEATS_S, NODES, TASKS_S, LineGround, cells
    from yaqd.sim.line.costs import CostsError, read, shipped
    from yaqd.sim.line.report import HEAD, points
    from yaqd.sim.line.report import as_json as line_json
    from yaqd.sim.line.report import line as where_it_pays

    try:
        costs = shipped() if options["costs"] is None else read(options["costs"])
    except CostsError as error:
        raise CommandError(str(error)) from None
    ground = LineGround(options["slots"], options["poll"], options["start"], options["cores"], options["warm"])
    nodes = options["nodes"] or NODES
    chosen = list(
        cells(
            ground,
            costs,
            nodes=[max(1, many // 10) for many in nodes] if options["is_quick"] else nodes,
            tasks_s=options["task"] or TASKS_S,
            heartbeats_s=options["heartbeat"] or HEARTBEATS_S,
            seeds=range(1, options["seeds"] + 1),
        )
    )
    if options["out"] is not None:
        make_folder(options["out"])
    ran: dict[int, Any] = {}
    try:
        with progress_bar("line") as progress:
            for done, (at, found) in enumerate(run_all(chosen, options["workers"]), 1):
                ran[at] = found
                progress(done, len(chosen), f"{chosen[at].nodes} nodes, queues {chosen[at].queues}")
    except ValueError as error:
        raise CommandError(f"line: {error}", FAILED) from None
    table = points(chosen, [ran[at] for at in range(len(chosen))])
    said = {
        "slots": ground.slots,
        "poll_s": ground.poll_s,
        "start_s": ground.start_s,
        "cores": ground.cores,
        "warm_s": ground.warm_s,
        "seeds": options["seeds"],
        "costs": costs.source,
    }
    value = line_json(table, said)
    if options["out"] is not None:
        _write(options["out"], table, value)
    if as_json:
        print_json(value)
        return
    print_table(HEAD, [one.row() for one in table], empty="no cell")
    click.echo()
    for sentence in (*where_it_pays(table, "auto"), *where_it_pays(table, "always")):
        click.echo(sentence)
    click.echo(f"costs: {costs.source}")


def _write(folder: Path, table: Any, value: dict[str, Any]) -> None:
    from yaqd.cli.simulation.screen import wrote
    from yaqd.sim.experiments.plots import FORMATS, NoPlots
    from yaqd.sim.line.plots import draw_line

    path = folder / "line.json"
    path.write_text(json.dumps(value, indent=1) + "\n")
    wrote(path)
    said = (
        f"{value['slots']} slots a node, masters call every {value['poll_s']:g} s, a start takes "
        f"{value['start_s']:g} s, cores of the ResourceManager: {value['cores']}, seeds: {value['seeds']}\n"
        f"{value['costs']}"
    )
    try:
        for path in draw_line(table, folder, FORMATS, said):
            wrote(path)
    except NoPlots as error:
        click.echo(f"yaq: {error}", err=True)
