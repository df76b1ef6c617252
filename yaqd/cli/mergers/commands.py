"""`yaq riffle`: the mergers of map outputs, and their files."""

import http.client
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import click

from yaqd.cli.exits import CommandError
from yaqd.cli.mergers.inspect import inspect
from yaqd.cli.options import json_option, with_conf
from yaqd.cli.output import duration, print_fields, print_json, print_table, size, snake_keys
from yaqd.config import Configuration

_TIMEOUT_S: Final = 10.0
_ANSWER_BYTES_MAX: Final = 4 << 20
_ASKED_AT_ONCE: Final = 16
#: of a merger's status
_NUMBERS: Final = ("queued", "running", "mergedBytes", "merges", "failed", "busyMs", "usedBytes", "budgetBytes")
_NUMBER_MAX: Final = 1 << 63


@click.group(help="Look at what merges map outputs; merge and check files by hand.")
def riffle() -> None:
    pass


# Status ---------------------------------------------------------------------------------------------------------------


@riffle.command("status")
@json_option
@with_conf
def status(conf: Configuration, as_json: bool) -> None:
    """List the mergers of all nodes: what waits, what runs, what was merged and how fast.

    Merges `wait` and `run`; `merged` is what they wrote and `files` how many merged files since the merger started,
    `speed` of the time in which it had something to do, `memory` what its buffers hold of what they may, `restarts` how
    often its node has started it again. A node without a merger is "off" (yaq.riffle.enabled), one whose merger does
    not run "down", or "starting" where it is about to.

    \b
    Example:
      yaq riffle status
    """
    from yaqd.cli.client import rm_client
    from yaqd.model import NodeState

    with rm_client(conf) as rm:
        nodes = rm.nodes((NodeState.RUNNING, NodeState.UNHEALTHY, NodeState.DECOMMISSIONING))
    nodes.sort(key=lambda found: (found.id.host, found.id.port))
    with ThreadPoolExecutor(_ASKED_AT_ONCE) as pool:
        answers = list(pool.map(_of_node, (found.http_address for found in nodes)))
    found = [{"node": str(node.id), **facts} for node, facts in zip(nodes, answers, strict=True)]
    if as_json:
        print_json(snake_keys(found))
        return
    headings = ("node", "state", "wait", "run", "merged", "files", "failed", "speed", "memory", "restarts")
    print_table(headings, [_row(facts) for facts in found], empty="no nodes are there")


def _of_node(address: str) -> dict[str, Any]:
    """What the node says of its merger; `error` where it says nothing."""
    connection = http.client.HTTPConnection(address, timeout=_TIMEOUT_S)
    try:
        connection.request("GET", "/ws/v1/node/merger")
        response = connection.getresponse()
        body = response.read(_ANSWER_BYTES_MAX)
        if response.status != http.client.OK:
            return {"error": f"answers {response.status}"}
        found = json.loads(body)["merger"]
        return found if _is_status(found) else {"error": "answers nonsense"}
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError, RecursionError) as error:
        return {"error": f"does not answer: {error}"}
    finally:
        connection.close()


def _is_status(found: object) -> bool:
    """Is all there that is shown of a merger that runs, as numbers?"""
    if not isinstance(found, dict):
        return False
    return not found.get("up") or all(
        type(found.get(name)) in (int, float) and 0 <= found[name] <= _NUMBER_MAX for name in _NUMBERS
    )


def _row(facts: dict[str, Any]) -> tuple[object, ...]:
    if "error" in facts or not facts.get("up"):
        down = "starting" if facts.get("starting") is True else "down"
        state = facts.get("error") or (down if facts.get("enabled") else "off")
        return (facts["node"], state, "", "", "", "", "", "", "", facts.get("restarts", ""))
    seconds = facts["busyMs"] / 1000
    speed = f"{size(facts['mergedBytes'] / seconds)}/s" if seconds else "-"
    return (
        facts["node"],
        "up",
        facts["queued"],
        facts["running"],
        size(facts["mergedBytes"]),
        facts["merges"],
        facts["failed"],
        speed,
        f"{size(facts['usedBytes'])} of {size(facts['budgetBytes'])}",
        facts.get("restarts", ""),
    )


# Files ----------------------------------------------------------------------------------------------------------------


@riffle.command("merge")
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.argument("maps", nargs=-1, metavar="[MAP]...")
@click.option("--name", default="by-hand", show_default=True, help="Of the merged file.")
@click.option("--memory", type=click.IntRange(1, 1 << 20), default=512, show_default=True, metavar="MB",
              help="What the buffers may take.")  # fmt: skip
@json_option
def merge(folder: Path, maps: tuple[str, ...], name: str, memory: int, as_json: bool) -> None:
    """Merge map outputs into FOLDER/riffle/NAME.out.

    FOLDER is an application's folder on a node: it has output/MAP/file.out and its index for each map attempt. Without
    MAP all that are there are merged, by name; those without their index are left out, and named.

    \b
    Example:
      yaq riffle merge /tmp/local/usercache/me/appcache/application_1700000000000_0001
    """
    import time

    from riffle_merger.merger.errors import MergeError
    from riffle_merger.merger.files import survey
    from riffle_merger.merger.merge import READERS, MergeOrder, buffers_for, check_map_ids
    from riffle_merger.merger.merge import merge as merge_outputs
    from riffle_merger.merger.pool import BufferPool

    _check_name(folder, name)
    chosen, without_index = (maps, []) if maps else _outputs_of(folder)
    try:
        check_map_ids(chosen)
        pool = BufferPool(memory << 20)
        buffers = buffers_for(len(chosen), survey([folder], chosen).data_bytes, pool)
        started = time.monotonic()
        with ThreadPoolExecutor(READERS) as reader:
            order = MergeOrder(name, (folder,), chosen)
            merged = merge_outputs(order, pool, buffers, reader=reader, is_cancelled=lambda: False)
    except MergeError as error:
        raise CommandError(str(error)) from None
    facts: dict[str, Any] = {
        "file": str(merged.path),
        "maps": len(chosen),
        "left_out": without_index,
        "partitions": merged.partitions,
        "bytes": merged.bytes,
        "reads": merged.reads,
        "writes": merged.writes,
        "ms": round((time.monotonic() - started) * 1000),
    }
    if as_json:
        print_json(facts)
    else:
        _show_merged(facts)


def _check_name(folder: Path, name: str) -> None:
    """Raises CommandError where no merged file can have this name."""
    from riffle_merger.format.merged import NAME_BYTES_MAX, is_safe_name

    if not is_safe_name(name):
        raise CommandError(
            f'--name "{name}": give up to {NAME_BYTES_MAX} bytes of printable characters without /, not . at the front'
        )
    taken = folder / "riffle" / f"{name}.out"
    if any(found.exists() for found in (taken, taken.with_name(f"{taken.name}.index"))):
        raise CommandError(f"{taken} or its index is there already: remove both, or give another name with --name")


def _show_merged(facts: dict[str, Any]) -> None:
    print_fields(
        [
            *((name, facts[name]) for name in ("file", "maps", "partitions")),
            ("size", size(facts["bytes"])),
            ("requests", f"{facts['reads']} reads, {facts['writes']} writes"),
            ("took", duration(facts["ms"])),
        ]
    )


def _outputs_of(folder: Path) -> tuple[tuple[str, ...], list[str]]:
    """Names the map attempts with an output, and those whose output has no index, and tells of the latter.

    Raises CommandError where there is none of the former.
    """
    outputs = folder / "output"
    whole = sorted(path.parent.name for path in outputs.glob("*/file.out.index"))
    there = {path.parent.name for path in outputs.glob("*/file.out")}
    without_index = sorted(there - set(whole))
    if without_index:
        click.echo(f"yaq: {len(without_index)} without an index left out: {', '.join(without_index)}", err=True)
    if not whole:
        raise CommandError(f"no map output in {folder}/output: FOLDER is an application's folder on a node")
    return tuple(whole), without_index


riffle.add_command(inspect)
