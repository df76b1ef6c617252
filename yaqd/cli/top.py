"""`yaq top`: the nodes with their slots, queues, expected waits and how busy they have been."""

import sys
import time
from typing import Any

import click

from yaqd.cli.ended import EndedBySignal, clears_up
from yaqd.cli.options import FiniteFloat, json_option, with_conf
from yaqd.cli.output import duration, print_json, print_table
from yaqd.config import Configuration

_HEADINGS = ("node", "state", "running", "queued", "bound", "wait", "memory MB", "busy now", "1 min", "5 min")
_BAR = 10
_BUSY = _HEADINGS.index("busy now")
#: what a narrow terminal does without, first to last: positions in a row
_DISPENSABLE = (6, 9, 4, 8, 1)


@click.command()
@click.option("--once", is_flag=True, help="Print the table once and end, as it does where the output is no terminal.")
@click.option("--interval", type=FiniteFloat(min=0.2), default=2.0, show_default=True, help="Seconds.")
@json_option
@clears_up
@with_conf
def top(conf: Configuration, once: bool, interval: float, as_json: bool) -> None:
    """Show the nodes: what runs, what waits, how long a newcomer would wait, how busy they are and have been.

    \b
    Example:
      yaq top --once
    """
    from yaqd.cli.rm_web import get_json

    def nodes() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = get_json(conf, "/ws/v1/yaq/nodes")["nodes"]
        return sorted(found, key=lambda node: str(node["id"]))

    if as_json:
        print_json(nodes())
    elif once or not sys.stdout.isatty():
        found = nodes()
        print_table(_HEADINGS, [_row(node) for node in found], empty="no nodes are there")
        if legend := _legend(found):
            click.echo(legend)
    else:
        _watch(nodes, interval)


def _watch(nodes: Any, interval: float) -> None:
    """Until it is interrupted; `rich` is imported only here."""
    from rich.live import Live

    try:
        with Live(auto_refresh=False, screen=True) as live:
            while True:
                live.update(table(nodes(), live.console.width), refresh=True)
                time.sleep(interval)
    except EndedBySignal:
        raise
    except KeyboardInterrupt:
        return


def table(nodes: list[dict[str, Any]], width: int) -> Any:
    """Make the table for `rich`; in a terminal of few columns it has fewer of its own."""
    from rich.box import SIMPLE_HEAD
    from rich.markup import escape
    from rich.table import Table

    queued = sum(node["queued"] for node in nodes)
    running = sum(node["running"] for node in nodes)
    busy = sum(node["utilization"]["minute"] for node in nodes) / max(1, len(nodes))
    table = Table(
        box=SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        title=f"{len(nodes)} nodes, {running} running, {queued} queued, {busy:.1%} busy over a minute",
        caption=_legend(nodes) or None,
    )
    rows = [[str(cell) for cell in _row(node)] for node in nodes]
    with_bars = [
        [*row[:_BUSY], f"{_bar(node['utilization']['now'])} {row[_BUSY]}", *row[_BUSY + 1 :]]
        for row, node in zip(rows, nodes, strict=True)
    ]
    shown = _fitting(with_bars, width)
    if len(shown) == len(_HEADINGS):
        rows = with_bars
    else:
        # a number says what a bar does, and the minutes before say more
        shown = _fitting(rows, width)
    for place in shown:
        justify: Any = "left" if _HEADINGS[place] in ("node", "state") else "right"
        table.add_column(_HEADINGS[place], justify=justify, no_wrap=True)
    for row in rows:
        table.add_row(*(escape(row[place]) for place in shown))
    return table


def _fitting(rows: list[list[str]], width: int) -> list[int]:
    """The columns for which there is room: between two there are three characters."""
    shown = list(range(len(_HEADINGS)))
    needs = [3 + max(len(row[place]) for row in (_HEADINGS, *rows)) for place in shown]
    for place in _DISPENSABLE:
        if sum(needs[kept] for kept in shown) - 3 <= width:
            break
        shown.remove(place)
    return shown


def _bar(share: float) -> str:
    filled = round(share * _BAR)
    return "#" * filled + "." * (_BAR - filled)


def _legend(nodes: list[dict[str, Any]]) -> str:
    """Of what no heading can say, where it is shown."""
    is_open = any(node["queues"] and node["slots"] is None for node in nodes)
    return "running N/-: how many fit is known once one has waited there" if is_open else ""


def _row(node: dict[str, Any]) -> tuple[object, ...]:
    use = node["utilization"]
    wait = "no end" if node["waitS"] is None else duration(node["waitS"] * 1000)
    state = "DRAINS QUEUE" if node["isDraining"] else node["state"]
    if node["silentS"] is not None:  # what it said last is over, and nobody knows how it goes on
        state, wait = f"SILENT {duration(node['silentS'] * 1000)}", "-"
    return (
        node["id"],
        state,
        f"{node['running']}/{'-' if node['slots'] is None else node['slots']}" if node["queues"] else node["running"],
        node["queued"] if node["queues"] else "-",
        node["bound"] if node["queues"] else "-",
        wait if node["queues"] else "-",
        f"{node['usedMb']}/{node['memoryMb']}",
        *(f"{use[when]:.1%}" for when in ("now", "minute", "fiveMinutes")),
    )
