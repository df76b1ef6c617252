"""The tables that say what was found: effects of switches, bests, queues at nodes, loads, one thing at a time."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from yaqd.sim.experiments.report import number, table
from yaqd.sim.study.design import PARTS, StudyCell
from yaqd.sim.study.report.effects import (
    CONTRASTS,
    Duel,
    Effect,
    auto_cells,
    bests,
    duel,
    effects,
    queue_duels,
    queue_duels_elsewhere,
    verdict,
)
from yaqd.sim.study.report.intervals import Interval
from yaqd.sim.study.report.tables import COLUMNS, Results, StudyTable, main_loads, main_tables, plus_minus
from yaqd.sim.study.run import capacities

#: metrics of which effects are told, with their names
SHOWN: Final = (("median", "median"), ("p95", "95th percentile"))
#: sides of `loads` and `others`
FAIR: Final = "stock: fair"
#: of the better of both: auto is not to be worse
_WITHIN: Final = 0.97
UNQUEUED_NAME: Final = "ours without queues"
QUEUED_NAME: Final = "ours with queues"
AS_SHIPPED: Final = "ours as shipped"


def ratio_text(found: Interval | None) -> str:
    """Return a ratio as tables have it, with its interval where there is one."""
    if found is None:
        return "-"
    if found.low != found.low:
        return f"{found.mid:.3f}x"
    return f"{found.mid:.3f}x ({found.low:.3f} to {found.high:.3f})"


def effect_tables(results: Results) -> Iterator[StudyTable]:
    """Yield what each switch contributes, a table a metric."""
    loads = main_loads(results)
    highest = loads[-1:]
    for metric, name in SHOWN if loads else ():
        by_load = [list(effects(results, metric, load)) for load in loads]
        over = list(effects(results, metric, None))
        rows = [_effect_row([found[at] for found in by_load], over[at]) for at in range(len(CONTRASTS))]
        headings = ("switch", *(f"at {load:g}" for load in loads), "all loads")
        headings += tuple(f"{what}, at {load:g}" for what in ("alone", "among what ships") for load in highest)
        yield StudyTable(f"{name}: times as fast", headings, tuple(rows))


def _effect_row(by_load: Sequence[Effect], over: Effect) -> tuple[str, ...]:
    last = by_load[-1]
    overall = (ratio_text(found.overall) for found in (*by_load, over))
    return over.what, *overall, ratio_text(last.alone), ratio_text(last.shipped)


def best_table(results: Results) -> StudyTable:
    """Return the best of ours and what ships against the best of stock, each chosen by the figure that is shown."""
    rows = tuple(
        (
            f"{found.load:g}",
            found.metric,
            f"{who}: {short(found.cell)}",
            plus_minus(results.mean(found.cell, found.metric), 1),
            short(found.other),
            plus_minus(results.mean(found.other, found.metric), 1),
            ratio_text(found.faster),
        )
        for who, found in bests(results)
    )
    return StudyTable(
        "ours against the best of stock", ("load", "by", "ours", "s", "stock", "s", "times as fast"), rows
    )


def short(cell: StudyCell) -> str:
    """Return a cell's name without its side."""
    return cell.name.partition(": ")[2] or cell.name


def queue_table(results: Results) -> StudyTable:
    """Return each combination with queues at nodes, always and as they ship, against the same without."""
    medians, tails = (list(queue_duels(results, metric)) for metric, _ in SHOWN)
    autos = (list(queue_duels(results, metric, "auto")) for metric, _ in SHOWN)
    rows = tuple(
        (
            f"{one.load:g}",
            _without_queues(one.cell),
            ratio_text(one.faster),
            ratio_text(tail.faster),
            _both(one, tail),
            *(ratio_text(found.faster) for found in auto),
        )
        for one, tail, auto in zip(medians, tails, zip(*autos, strict=True), strict=True)
    )
    headings = ("load", "with", "always: median", "always: p95", "so", "auto: median", "auto: p95")
    return StudyTable("queues at nodes against none", headings, rows)


def has_auto_cells(results: Results) -> bool:
    """Return whether there is a cell with queues auto, always and off."""
    return any(auto_cells(results, SHOWN[0][0]))


def auto_table(results: Results, most: int = 8) -> StudyTable:
    """Return where auto is furthest behind the better of queues always and none, by the median and the tail."""
    rows: list[tuple[str, ...]] = []
    for metric, name in SHOWN:
        found = sorted(auto_cells(results, metric), key=lambda cell: cell.worth)
        within = sum(1 for cell in found if cell.worth >= _WITHIN)
        rows.append((name, f"{within} of {len(found)} cells are within 3 %", "", "", "", "", ""))
        for cell in found[:most]:
            times_s = (number(one, 1) for one in (cell.auto_s, cell.always_s, cell.off_s))
            rows.append((name, cell.where, *times_s, f"{cell.worth:.3f}", ratio_text(cell.faster)))
    headings = ("by", "cell", "auto, s", "always, s", "none, s", "the better of both / auto", "seed by seed")
    return StudyTable("auto against the better of queues always and none, the worst cells", headings, tuple(rows))


def _without_queues(cell: StudyCell) -> str:
    return ", ".join(f"{name} {level}" for name, level in cell.factors if name not in ("queues", "nodes"))


def _both(median: Duel, tail: Duel) -> str:
    said = verdict(median.faster), verdict(tail.faster)
    return said[0] if said[0] == said[1] else f"median: {said[0]}; 95th percentile: {said[1]}"


def capacity_table(results: Results) -> StudyTable:
    """Return what each side can do at most."""
    cells = {cell.name: cell for cell in results.cells("loads")}
    rows = tuple((name, plus_minus(results.mean(cell, "capacity"), 1)) for name, cell in cells.items())
    return StudyTable("capacity, % of the slots", ("side", "capacity %"), rows)


def load_table(results: Results) -> StudyTable:
    """Return each side at parts of its own capacity."""
    cells = results.cells("loads")
    names = list(dict.fromkeys(cell.name for cell in cells))
    rows = []
    for load in sorted({cell.load for cell in cells}):
        at = {cell.name: cell for cell in cells if cell.load == load}
        figures = (_two(results, at[name]) for name in names)
        ahead = (ratio_text(duel(results, m, at[AS_SHIPPED], at[FAIR]).faster) for m, _ in SHOWN)
        said = f"{load:g}, beyond capacity" if load > 1 else f"{load:g}"
        rows.append((said, *figures, *ahead))
    headings = ("of its own capacity", *names, *(f"{name}, shipped against fair" for _, name in SHOWN))
    return StudyTable("median and 95th percentile by load, s", headings, tuple(rows))


def _two(results: Results, cell: StudyCell | None) -> str:
    if cell is None:
        return "-"
    return " / ".join(number(results.mean(cell, metric).mid, 1) for metric, _ in SHOWN)


def other_table(results: Results) -> StudyTable:
    """Return one thing changed at a time: three sides, and what queues at nodes do there."""
    cells = results.cells("others")
    duels = {(found.cell.factors, found.metric): found for m, _ in SHOWN for found in queue_duels_elsewhere(results, m)}
    rows = []
    for factors in dict.fromkeys(cell.factors for cell in cells):
        at = {cell.name: cell for cell in cells if cell.factors == factors}
        found = [duels.get((factors, metric)) for metric, _ in SHOWN]
        figures = (_two(results, at.get(name)) for name in (FAIR, UNQUEUED_NAME, QUEUED_NAME, AS_SHIPPED))
        so = _both(found[0], found[1]) if found[0] is not None and found[1] is not None else "-"
        ((factor, level),) = factors
        rows.append((factor, level, *figures, *(ratio_text(one.faster if one else None) for one in found), so))
    sides = (FAIR, UNQUEUED_NAME, QUEUED_NAME, AS_SHIPPED)
    headings = ("factor", "level", *sides, "queues: median", "queues: 95th percentile", "so")
    return StudyTable("median and 95th percentile with one thing changed, s", headings, tuple(rows))


def chosen_tables(results: Results) -> Iterator[StudyTable]:
    """Yield the figures of cells that were chosen from the study, and how auto does among them."""
    *columns, _ = COLUMNS  # the last is the capacity, which is measured for the others
    rows = []
    for cell in (cell for part in PARTS for cell in results.cells(part)):
        factors = "" if cell.part == "main" else ", ".join(f"{factor} {level}" for factor, level in cell.factors)
        figures = (plus_minus(results.mean(cell, metric), digits, more) for metric, _, digits, more in columns)
        rows.append((cell.part, f"{cell.load:g}", cell.name, factors, *figures))
    names = ("part", "load", "system", "with", *(heading for _, heading, _, _ in columns))
    yield StudyTable("cells", names, tuple(rows))
    if has_auto_cells(results):
        yield auto_table(results)


def all_tables(results: Results) -> Iterator[StudyTable]:
    """Yield every table of the parts that are there, in the order of the page; of one side alone its figures."""
    if results.cells("main"):
        yield from main_tables(results)
    if results.has_both_sides("main"):
        yield from effect_tables(results)
        yield best_table(results)
        yield queue_table(results)
    if results.cells("loads"):
        yield capacity_table(results)
    if results.has_both_sides("loads"):
        yield load_table(results)
    if results.has_both_sides("others"):
        yield other_table(results)
    if has_auto_cells(results):
        yield auto_table(results)


def lines(results: Results, tables: Iterable[StudyTable], *, quick: bool) -> Iterator[str]:
    """Yield what is printed at the end of a run."""
    if quick:
        yield "QUICK: a small part of the study; the figures say only that it runs"
    for found in tables:
        yield found.title
        yield from table(found.headings, found.rows)
        yield ""
    for part, many in results.missing().items():
        yield f"{part}: {many} runs are missing"


def as_json(results: Results, found: Iterable[StudyTable]) -> dict[str, Any]:
    """Return the figures of each cell by seed, and the tables, as JSON has them."""
    cells = [_json_cell(results, cell) for part in PARTS for cell in results.cells(part)]
    tables = [{"title": t.title, "headings": t.headings, "rows": t.rows} for t in found]
    return {"cells": cells, "tables": tables, "missing": results.missing(), "starts": results.store.starts}


def _json_cell(results: Results, cell: StudyCell) -> dict[str, Any]:
    capacity = results.capacities[cell.id]
    return {
        "part": cell.part,
        "side": cell.side,
        "cell": cell.name,
        "load": cell.load,
        "load_of_slots": None if capacity is None else round(cell.load * capacity, 4),
        "capacity_by_seed": capacities(cell.own_capacity_trials(), results.store),
        "factors": dict(cell.factors),
        "seeds": results.seeds[cell.part],
        "figures": {name: results.values(cell, name) for name, _, _, _ in COLUMNS if name != "capacity"},
    }
