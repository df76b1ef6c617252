"""`yaq queue`: the cluster's queues."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from yaqd.cli.exits import CommandError
from yaqd.cli.options import json_option, with_conf
from yaqd.cli.output import print_json, print_table
from yaqd.config import Configuration

if TYPE_CHECKING:
    from tez_adapter.client.rm_client import QueueReport


@click.group(help="List the cluster's queues.")
def queue() -> None:
    pass


@queue.command("list")
@click.argument("name", default="root")
@json_option
@with_conf
def list_queues(conf: Configuration, name: str, as_json: bool) -> None:
    """List the queue NAME (default: root) and all queues below it.

    \b
    Example:
      yaq queue list
    """
    from yaqd.cli.client import rm_client

    with rm_client(conf) as rm:
        found = rm.queue(name)
    if found is None:
        raise CommandError(f'no queue "{name}"; `yaq queue list` shows them all')
    if as_json:
        print_json([_as_dict(below) for below, _ in _walk(found, 0)])
        return
    rows = [
        (
            "  " * depth + below.name,
            below.state,
            f"{below.capacity:.0%}",
            f"{below.maximum_capacity:.0%}",
            f"{below.current_capacity:.0%}",
            below.running,
            below.pending,
        )
        for below, depth in _walk(found, 0)
    ]
    print_table(("queue", "state", "capacity", "maximum", "in use", "running", "waiting"), rows, empty="no queues")


def _walk(queue: "QueueReport", depth: int) -> "Iterator[tuple[QueueReport, int]]":
    yield queue, depth
    for child in queue.children:
        yield from _walk(child, depth + 1)


def _as_dict(queue: "QueueReport") -> dict[str, object]:
    return {
        "name": queue.name,
        "path": queue.path,
        "state": queue.state,
        "capacity": queue.capacity,
        "maximum_capacity": queue.maximum_capacity,
        "current_capacity": queue.current_capacity,
        "running": queue.running,
        "pending": queue.pending,
        "children": [child.path for child in queue.children],
    }
