"""`yaq top`: the nodes with their slots, queues, expected waits and how busy they have been."""

import sys
import time
from typing import Any

import click

from yaqd.cli.options import json_option, with_conf
from yaqd.cli.output import duration, print_json, print_table
from yaqd.config import Configuration

_HEADINGS = ("node", "state", "running", "queued", "bound", "wait", "memory MB", "busy now", "1 min", "5 min")
_BAR = 10


@click.command()
@click.option("--once", is_flag=True, help="Print the table once and end, as it does where the output is no terminal.")
@click.option("--interval", type=click.FloatRange(min=0.2), default=2.0, show_default=True, help="Seconds.")
@json_option
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
        print_table(_HEADINGS, [_row(node) for node in nodes()], empty="no nodes are there")
    else:
        _watch(nodes, interval)


def _watch(nodes: Any, interval: float) -> None:
    """Until it is interrupted; `rich` is imported only here."""
    from rich.live import Live

    try:
        with Live(table(nodes()), auto_refresh=False, screen=True) as live:
            while True:
                time.sleep(interval)
                live.update(table(nodes()), refresh=True)
    except KeyboardInterrupt:
        return


def table(nodes: list[dict[str, Any]]) -> Any:
    from rich.markup import escape
    from rich.table import Table

    queued = sum(node["queued"] for node in nodes)
    running = sum(node["running"] for node in nodes)
    busy = sum(node["utilization"]["minute"] for node in nodes) / max(1, len(nodes))
    table = Table(title=f"{len(nodes)} nodes, {running} running, {queued} queued, {busy:.1%} busy over a minute")
    for heading in _HEADINGS:
        table.add_column(heading, justify="left" if heading in ("node", "state") else "right", no_wrap=True)
    for node in nodes:
        cells = [escape(str(cell)) for cell in _row(node)]
        table.add_row(*cells[:7], f"{_bar(node['utilization']['now'])} {cells[7]}", *cells[8:])
    return table


def _bar(share: float) -> str:
    filled = round(share * _BAR)
    return "#" * filled + "." * (_BAR - filled)


def _row(node: dict[str, Any]) -> tuple[object, ...]:
    use = node["utilization"]
    wait = "no end" if node["waitS"] is None else duration(node["waitS"] * 1000)
    state = "DRAINS QUEUE" if node["isDraining"] else node["state"]
    return (
        node["id"],
        state,
        node["running"] if node["slots"] is None else f"{node['running']}/{node['slots']}",
        node["queued"] if node["queues"] else "-",
        node["bound"] if node["queues"] else "-",
        wait if node["queues"] else "-",
        f"{node['usedMb']}/{node['memoryMb']}",
        *(f"{use[when]:.1%}" for when in ("now", "minute", "fiveMinutes")),
    )
