"""The page of the study, in Markdown: what was run, the tables, and what they say, whichever side that favours.

Each section names the command that shows its figures. A part of which no seed is whole is said to be missing.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from yaqd.sim.study.design import PARTS, SHIPPED_NAME, Part
from yaqd.sim.study.report.effects import Duel, Effect, bests, effects, queue_duels, queue_duels_elsewhere, verdict
from yaqd.sim.study.report.findings import (
    SHOWN,
    auto_table,
    best_table,
    capacity_table,
    effect_tables,
    has_auto_cells,
    load_table,
    other_table,
    queue_table,
    ratio_text,
    short,
)
from yaqd.sim.study.report.tables import Results, StudyTable, main_loads, main_tables

_INTRO: Final = """\
<!-- written by `yaq sim study --page`; changes by hand are lost -->
# The study of the switches

What ships differs from stock YARN in several switches. This page says what each of them does in the simulator, with
stock at its best beside it. Where a switch costs, it says so. How to run it is in
[The simulator](simulator.md#the-study).
"""
#: switches that a sentence names, the strongest ones
_NAMED: Final = 3
#: that make an interval
_SEEDS_LEAST: Final = 2
_WORDS: Final = """\
- **Median, p95, p99, max** are of job completion times from submission, the mean over the seeds.
  The figure behind ± is half of an interval of 95 %, by Student's t over the seeds.
- **Times as fast** is a ratio of times, taken seed by seed on the same jobs, in the geometric mean, with its interval.
  Intervals are not corrected for their number: of forty, two miss by chance.
- **Slowdown** is a job's time over what it would take alone if nothing but its tasks took time, the mean over jobs.
- **Slots used** counts running tasks, until the last job arrives.
- **RM us/task** is processor time of the scheduler's decisions a task, measured on this machine. Calls are not in it,
  nor heartbeats without news. Of stock it is that of our code by stock's rules, and says nothing of Hadoop's own.
- **Capacity** is the part of the slots that works while there is work for all, with all jobs submitted at once. It is
  measured with three seeds; `-` where it was not.
- **Queues**: containers wait at nodes. **Events**: a node reports at once that a container ended. **Asks**: the
  ResourceManager decides when it is asked too. **Jobs** and **nodes**: the orders there.
- Every system knows each stage's mean duration, except where the history is what is changed. Orders `fifo` and `fair`
  use none.
"""


def page(results: Results, note: str = "") -> str:
    """Return the whole page. `note`: what its reader has to know beside, a paragraph."""
    parts = (
        _INTRO,
        *_in_short(results),
        *_what_was_run(results, note),
        *_main(results),
        *_loads(results),
        *_others(results),
        *_auto(results),
        *_missing(results),
    )
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def markdown(found: StudyTable) -> str:
    """Return a table in Markdown, with its title above."""
    lines = (found.headings, ("---",) * len(found.headings), *found.rows)
    return f"**{found.title}**\n\n" + "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


def _command(part: Part) -> str:
    return f"Shown by `yaq sim study --only {part} --out /tmp/study`."


def _in_short(results: Results) -> Iterator[str]:
    """What the highest load of the factorial says, from the intervals."""
    loads = main_loads(results)
    if not loads or len(results.seeds["main"]) < _SEEDS_LEAST:
        return
    yield "## In short\n"
    yield f"At {loads[-1]:g} of the capacity, the highest load of the main table. {_command('main')}\n"
    yield _bullets(_short_words(results, loads[-1]))


def _short_words(results: Results, load: float) -> Iterator[str]:
    for metric, name in SHOWN:
        of_each = list(effects(results, metric, load))
        shown = [one for one in of_each if not one.overall.low <= 1 <= one.overall.high]
        if shown:
            strongest = max(shown, key=_strength)
            does = "helps most" if strongest.overall.mid > 1 else "costs most"
            yield (
                f"{name.capitalize()}: of switches whose interval leaves out 1, `{strongest.what}` {does}, "
                f"{ratio_text(strongest.overall)}."
            )
            farthest = max(of_each, key=_strength)
            if farthest.what != strongest.what:
                yield (
                    f"{name.capitalize()}: `{farthest.what}` is further from 1 by the mean, "
                    f"{ratio_text(farthest.overall)}, which the seeds do not show."
                )
        else:
            yield f"{name.capitalize()}: no switch shows a difference over all combinations of the others."
        for who, found in bests(results):
            if (found.load, found.metric) == (load, metric) and who in _WHO:
                theirs = f"the best of stock, `{short(found.other)}`"
                yield f"{name.capitalize()}: {_WHO[who]} is {_against(found)} {theirs}."
        for found in queue_duels(results, metric, "auto"):
            if found.load == load and found.cell.name == SHIPPED_NAME:
                yield f"{name.capitalize()}, among what ships: {verdict(found.faster)}, {ratio_text(found.faster)}."


def _strength(effect: Effect) -> float:
    return abs(math.log(effect.overall.mid))


def _what_was_run(results: Results, note: str) -> Iterator[str]:
    yield "## What was run\n"
    yield "```\n" + "\n".join(dict.fromkeys(str(one["command"]) for one in results.store.starts)) + "\n```\n"
    if len(results.store.digests) > 1:
        yield "The results of several versions of the code are put together here.\n"
    if note:
        yield note + "\n"
    yield _conditions(results)
    yield _WORDS


def _conditions(results: Results) -> str:
    starts, store = results.store.starts, results.store
    first = next(cell for part in PARTS for cell in results.cells(part))
    shape = first.ground.shape
    # a copy of a checkout that is compiled is in no repository
    commits = ", ".join(f"`{one}`" for one in dict.fromkeys(str(start["commit"]) for start in starts) if one)
    took_h = sum(one.took_s for one in store.found.values()) / 3600
    seeds = "; ".join(
        f"{part}: {len(results.seeds[part])} ({', '.join(map(str, results.seeds[part]))})"
        for part in PARTS
        if results.seeds[part]
    )
    rows = (
        ("cluster", f"{shape.nodes} nodes of {shape.slots} slots, heartbeat {shape.heartbeat_s:g} s"),
        ("jobs", f"{first.ground.jobs} of {first.ground.workload}, Poisson arrivals"),
        ("start of a container", f"{shape.start_gap_s + shape.prepare_s:g} s on both sides, a JVM on a cold node"),
        ("seeds", seeds),
        ("code", f"{f'commit {commits}, ' if commits else ''}digest {', '.join(f'`{one}`' for one in store.digests)}"),
        ("when and where", f"{starts[0]['at']} UTC, {starts[0]['processor']}, Python {starts[0]['python']}"),
        ("runs", f"{len(store.found)}, {took_h:.1f} h of processor time"),
    )
    return markdown(StudyTable("conditions", ("what", "as it was"), rows))


def _main(results: Results) -> Iterator[str]:
    if not results.cells("main"):
        return
    yield "## The main table\n"
    yield (
        "A load is a part of what our ResourceManager can do with every switch off, and is the same for all. Stock "
        "goes by the rules of Hadoop's CapacityScheduler, which give one container a heartbeat as shipped. What each "
        "can do at most is in the last column. A queue's order of jobs does not reach opportunistic containers, so "
        f"these have one row a limit. {_command('main')}\n"
    )
    yield from map(markdown, main_tables(results))
    yield "## Which switch contributes what\n"
    yield (
        "Each figure is over all combinations of the other switches. The last two columns have one combination each. "
        "*Alone* is the switch on, all else off, at the highest load. *Among what ships* is what ships against the "
        f"same without the switch. {_command('main')}\n"
    )
    yield "![what one switch does](images/study-effects.svg)\n"
    yield from map(markdown, effect_tables(results))
    yield _bullets(_effect_words(results))
    yield "## Ours against the best of stock\n"
    yield (
        "On both sides the best of the table, chosen by the figure that is compared, on the same seeds. So both are a "
        f"little too good. {_command('main')}\n"
    )
    yield markdown(best_table(results))
    yield _bullets(_best_words(results))
    yield "## Where queues at nodes cost, and where they pay\n"
    yield f"With queues and their shipped order against the same switches without queues. {_command('main')}\n"
    yield (
        "*Always* is `yaq.queue.enabled=true`, where one container waits at each node at least. *Auto* is what ships.\n"
    )
    yield "![queues at nodes](images/study-queues.svg)\n"
    yield _bullets(_queue_words(results))
    yield markdown(queue_table(results))


def _bullets(said: Iterable[str]) -> str:
    return "\n".join(f"- {one}" for one in said) + "\n"


def _effect_words(results: Results) -> Iterator[str]:
    """The switches that help and harm at each load, the largest first."""
    if len(results.seeds["main"]) < _SEEDS_LEAST:
        yield "One seed has no intervals, so nothing is said of what helps."
        return
    for load in main_loads(results):
        for metric, name in SHOWN:
            found = list(effects(results, metric, load))
            helps = sorted((one for one in found if one.overall.low > 1), key=lambda one: -one.overall.mid)
            harms = sorted((one for one in found if one.overall.high < 1), key=lambda one: one.overall.mid)
            said = _listed(helps, "nothing helps"), _listed(harms, "Nothing harms", "Harm: ")
            yield f"At {load:g}, {name}: {said[0]}. {said[1]}."


def _listed(found: list[Effect], none: str, before: str = "") -> str:
    said = "; ".join(f"{one.what} {one.overall.mid:.3f}x" for one in found[:_NAMED])
    return f"{before}{said}" if said else none


_WHO: Final = {"as shipped": "what ships", "best without queues": "our best without queues"}


def _best_words(results: Results) -> Iterator[str]:
    for who, found in bests(results):
        if who in _WHO and found.metric in dict(SHOWN):
            yield f"At {found.load:g}, by {found.metric}, {_WHO[who]} is {_against(found)} the best of stock."


def _against(found: Duel) -> str:
    if found.faster.low > 1:
        return f"{ratio_text(found.faster)} as fast as"
    if found.faster.high < 1:
        return f"slower, {ratio_text(found.faster)}, than"
    return f"{ratio_text(found.faster)}, with no difference shown, against"


def _queue_words(results: Results) -> Iterator[str]:
    for metric, name in SHOWN:
        duels = list(queue_duels(results, metric))
        for load in main_loads(results):
            counts = Counter(verdict(found.faster) for found in duels if found.load == load)
            yield f"At {load:g}, {name}: of {sum(counts.values())} combinations, {_counted(counts)}."
        for found in queue_duels(results, metric, "auto"):
            if found.cell.name == SHIPPED_NAME:
                said = ratio_text(found.faster)
                yield f"At {found.load:g}, {name}, among what ships: {verdict(found.faster)}, {said}."


def _counted(counts: Counter[str]) -> str:
    return (
        f"queues pay in {counts['queues pay here']}, cost in {counts['queues cost here']}, "
        f"and show no difference in {counts['no difference shown']}"
    )


def _loads(results: Results) -> Iterator[str]:
    if not results.cells("loads"):
        return
    yield "## Each side at parts of its own capacity\n"
    yield (
        "A side that can do more is given more, so equal rows are not equal loads. The row above 1 is beyond capacity: "
        f"jobs pile up for as long as they arrive. {_command('loads')}\n"
    )
    yield "![times by load](images/study-loads.svg)\n"
    yield markdown(capacity_table(results))
    yield markdown(load_table(results))


def _others(results: Results) -> Iterator[str]:
    if not results.cells("others"):
        return
    yield "## One thing at a time\n"
    yield (
        "At 0.7 of what ours can do on the same ground with every switch off. Cells have the median and the 95th "
        "percentile. Stock's side is `fair` as it comes, which gives one container a heartbeat. That is too few for "
        "short tasks. With `maximum-offswitch-assignments` raised it would do better there, which is not measured "
        "here. Masters and orders at nodes matter only where containers wait, which is seldom under what ships here. "
        "Their rows have queues always, too. "
        f"{_command('others')}\n"
    )
    yield markdown(other_table(results))
    yield _bullets(_other_words(results))


def _other_words(results: Results) -> Iterator[str]:
    duels = list(queue_duels_elsewhere(results, "median"))
    for said in ("queues pay here", "queues cost here"):
        levels = ["`{} {}`".format(*found.cell.factors[0]) for found in duels if verdict(found.faster) == said]
        if levels:
            yield f"In the median, {said}: {'; '.join(dict.fromkeys(levels))}."


def _auto(results: Results) -> Iterator[str]:
    if has_auto_cells(results):
        yield "## Auto against the better of both\n"
        yield (
            "Of all cells of the study that have all three. The worst ones are listed. "
            "Shown by `yaq sim study --out /tmp/study`.\n"
        )
        yield markdown(auto_table(results))


def _missing(results: Results) -> Iterator[str]:
    lacks = results.missing()
    if not lacks:
        return
    yield "## What is missing\n"
    yield _bullets(_lacking(results, part, many) for part, many in lacks.items())


def _lacking(results: Results, part: Part, many: int) -> str:
    has = len(results.seeds[part])
    said = f"The tables have {has} of {len(results.asked)} seeds" if has else "The page has nothing of it"
    more = f"`yaq sim study --only {part} --out /tmp/study` goes on with it."
    return f"`{part}`: {many} runs were not over. {said}. {more}"
