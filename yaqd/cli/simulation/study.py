"""`yaq sim study`: the factorial study, run as far as it is not in its store, and what it says."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from yaqd.cli.exits import FAILED, CommandError
from yaqd.cli.options import json_option
from yaqd.cli.output import print_json, print_table

if TYPE_CHECKING:
    from yaqd.sim.study.design import StudyCell
    from yaqd.sim.study.report.tables import Results
    from yaqd.sim.study.store import StudyStore

_HELP = """Run the factorial study of switches, and say what it shows.

Which switch of ours contributes what, the best of ours against the best of stock, at which loads, and where queues at
nodes cost. Loads are parts of capacities that are measured first.

What is over is in DIR, in a file of JSON lines. The command takes up what was ended, at any point. It refuses results
of other code. --from-store runs nothing and takes them, for tables and the page.

\b
Example:
  yaq sim study --list
  yaq sim study --out /tmp/study --only main --workers 2
  yaq sim study --out /tmp/cell --only main --cell "events off, asks on, jobs fifo" --seeds 20
  yaq sim study --out /tmp/study --from-store --page study.md
"""


@click.command("study", help=_HELP)
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
              help="Folder of the store; needed unless --list.")  # fmt: skip
@click.option("--only", type=click.Choice(("main", "loads", "others")), multiple=True,
              help="A part of it; may be repeated [default: all].")  # fmt: skip
@click.option("--side", type=click.Choice(("stock", "ours")), help="Systems of one side alone [default: both].")
@click.option(
    "--cell", default="", metavar="TEXT", help="Cells alone whose name or factors hold TEXT (--list has them)."
)
@click.option("--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes to run it in.")
@click.option("--seeds", type=click.IntRange(1, 1000), metavar="N", help="Seeds of each cell [default: 5, quick: 1].")
@click.option("--first-seed", type=click.IntRange(0), metavar="N",
              help="The first seed [default: 1001]. Capacities keep theirs.")  # fmt: skip
@click.option("--nodes", type=click.IntRange(4, 10_000), metavar="N",
              help="Nodes of the cluster; as many times fewer or more jobs [default: 80].")  # fmt: skip
@click.option("--quick", "is_quick", is_flag=True, help="Eight nodes, few jobs, one seed: does it run at all?")
@click.option("--list", "is_list", is_flag=True, help="Print the cells and how long they will take; run nothing.")
@click.option("--from-store", is_flag=True, help="Run nothing; say what the store has, whatever code it is of.")
@click.option("--page", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Write the page to this file, and its plots to the folder `images` beside it.")  # fmt: skip
@click.option("--note", default="", metavar="TEXT", help="A paragraph for the page, of what its reader has to know.")
@json_option
def study(out: Path | None, only: tuple[Any, ...], is_quick: bool, is_list: bool, **options: Any) -> None:
    from yaqd.sim.study.design import BASE, FIRST_SEED, PARTS, SEEDS, cells, scaled, small
    from yaqd.sim.study.report.tables import Results
    from yaqd.sim.study.store import StoreError, StudyStore

    chosen = cells(tuple(part for part in PARTS if part in (only or PARTS)))
    chosen = [cell for cell in chosen if options["side"] in (None, cell.side) and options["cell"] in _said(cell)]
    if not chosen:
        raise CommandError(f"--cell {options['cell']}: no cell is called so; --list has all")
    chosen = small(chosen) if is_quick else scaled(chosen, options["nodes"] or BASE.shape.nodes)
    first = FIRST_SEED if options["first_seed"] is None else options["first_seed"]
    seeds = range(first, first + (options["seeds"] or (1 if is_quick else SEEDS)))
    _refuse_what_is_for_nothing(out, is_quick=is_quick, is_list=is_list, **options)
    try:
        store = StudyStore(out or Path("/nonexistent"))
        if is_list:
            _list(chosen, seeds, store, options["workers"], options["as_json"])
            return
        if not options["from_store"]:
            _run(chosen, seeds, store, options["workers"])
        results, are_some = Results(chosen, seeds, store), bool(options["cell"])
        _show(
            results,
            options["page"],
            options["note"],
            are_some=are_some,
            is_quick=is_quick,
            as_json=options["as_json"],
        )
    except StoreError as error:
        raise CommandError(str(error)) from None


def _refuse_what_is_for_nothing(out: Path | None, *, is_quick: bool, is_list: bool, **options: Any) -> None:
    """Raise CommandError for options of which one would be left unheeded."""
    from yaqd.sim.study.store import FILE

    if is_quick and options["nodes"] is not None:
        raise CommandError("--quick has eight nodes: leave --nodes out")
    if is_list and (options["page"] is not None or options["note"]):
        raise CommandError("--list runs and writes nothing: leave --page and --note out")
    if options["note"] and options["page"] is None:
        raise CommandError("--note is a paragraph of the page: name it with --page FILE")
    if options["page"] is not None and (options["side"] is not None or options["cell"]):
        raise CommandError("--page holds all cells against each other: leave --side and --cell out")
    if out is None and not is_list:
        raise CommandError("--out DIR is missing: the folder where results are kept")
    if options["from_store"] and out is not None and not (out / FILE).is_file():
        raise CommandError(f"--from-store: {out} has no {FILE}, so no study has run there")


def _said(cell: "StudyCell") -> str:
    return ", ".join((cell.name, *(f"{factor} {level}" for factor, level in cell.factors)))


def _list(cells: "Sequence[StudyCell]", seeds: Sequence[int], store: "StudyStore", workers: int, as_json: bool) -> None:
    from yaqd.sim.study.run import wanted

    found = wanted(cells, seeds, store)
    many = len(found.capacity) + found.later
    if as_json:
        rows = [{"part": c.part, "load": c.load, "cell": c.name, "factors": dict(c.factors)} for c in cells]
        print_json({"cells": rows, "seeds": list(seeds), "trials_left": many, "estimate_s": round(found.estimate_s)})
        return
    factors = (" ".join(f"{factor} {level}" for factor, level in cell.factors) for cell in cells)
    lines = [(cell.part, cell.load, cell.name, said) for cell, said in zip(cells, factors, strict=True)]
    print_table(("part", "load", "cell", "factors"), lines, empty="no cell")
    click.echo(
        f"\n{len(cells)} cells, {len(seeds)} seeds; {many} runs are left, {len(found.capacity)} of them first: "
        f"about {found.estimate_s / 60:.0f} min of processor time, {found.estimate_s / 60 / workers:.0f} min with "
        f"--workers {workers}"
    )


def _run(cells: "Sequence[StudyCell]", seeds: Sequence[int], store: "StudyStore", workers: int) -> None:
    from yaqd.cli.simulation.screen import progress_bar
    from yaqd.sim.shape import Stuck
    from yaqd.sim.study.digest import code_digest
    from yaqd.sim.study.run import run_study
    from yaqd.sim.study.start import start_line

    digest = code_digest()
    try:
        with store.writing(), progress_bar("study") as progress:
            store.check(digest)
            store.started(start_line(sys.argv, digest))
            run_study(cells, seeds, store, digest, workers=workers, progress=progress)
    except (ValueError, Stuck) as error:
        raise CommandError(f"study: {error}", FAILED) from None


def _show(results: "Results", page: Path | None, note: str, *, are_some: bool, is_quick: bool, as_json: bool) -> None:
    from yaqd.sim.study.report.findings import all_tables, chosen_tables, lines
    from yaqd.sim.study.report.findings import as_json as results_json

    if page is not None:
        _write(page, results, note)
    tables = chosen_tables(results) if are_some else all_tables(results)
    if as_json:
        print_json(results_json(results, tables))
    else:
        for line in lines(results, tables, quick=is_quick):
            click.echo(line)


def _write(file: Path, results: "Results", note: str) -> None:
    from yaqd.cli.simulation.screen import make_folder, wrote
    from yaqd.sim.experiments.plots import NoPlots
    from yaqd.sim.study.report.page import page
    from yaqd.sim.study.report.plots import draw_study

    if not any(results.seeds.values()):
        raise CommandError(f"--page {file}: no part has a seed that is whole", FAILED)
    folder = file.parent / "images"
    make_folder(folder)
    try:
        written = draw_study(results, folder, ("svg",))
    except NoPlots as error:
        raise CommandError(str(error), FAILED) from None
    file.write_text(page(results, note))
    for path in (*written, file):
        wrote(path)
