"""`yaq node`: the cluster's nodes."""

from typing import TYPE_CHECKING, Any

import click

from yaqd.cli.options import json_option, with_conf
from yaqd.cli.output import duration, print_json, print_table, shortened_error
from yaqd.config import Configuration

if TYPE_CHECKING:
    from tez_adapter.client.rm_client import NodeReport

#: of what a node says of its health, so that the last words of one bad folder are still there
_HEALTH_CHARS = 300


@click.group(help="List the cluster's nodes, take them out of use and back in.")
def node() -> None:
    pass


@node.command("list")
@click.option("--all", "show_all", is_flag=True, help="Also nodes that are lost or have left.")
@json_option
@with_conf
def list_nodes(conf: Configuration, show_all: bool, as_json: bool) -> None:
    """List the nodes with what they offer and what is in use.

    Containers are those given there: of them so many run, or are about to, and so many wait in the node's queue for
    their turn, by its last report; a node that does not report any more is said to be silent, and since when, until it
    counts as lost. What is in use is what the guaranteed ones hold, at most all of the node.

    \b
    Example:
      yaq node list --all
    """
    from yaqd.cli.client import rm_client
    from yaqd.model import NodeState

    usable = (NodeState.RUNNING, NodeState.UNHEALTHY, NodeState.DECOMMISSIONING)
    with rm_client(conf) as rm:
        nodes = rm.nodes(() if show_all else usable)
    nodes.sort(key=lambda found: (found.id.host, found.id.port))
    silent = _silent(conf)
    if as_json:
        print_json([_facts(one, silent.get(str(one.id))) for one in nodes])
        return
    rows = [_row(one, silent.get(str(one.id))) for one in nodes]
    headings = ("node", "state", "web", "containers", "memory MB", "vcores", "further", "health")
    print_table(headings, rows, empty="no nodes are there")


def _facts(node: "NodeReport", silent_s: float | None) -> dict[str, object]:
    used, most = node.used, node.capability
    return {
        "id": str(node.id),
        "state": node.state.name,
        "silent_s": silent_s,
        "http_address": node.http_address,
        "rack": node.rack,
        "containers": node.containers,
        "waiting": node.waiting,
        "used_mb": used.memory_mb,
        "memory_mb": most.memory_mb,
        "used_vcores": used.vcores,
        "vcores": most.vcores,
        "further": {name: {"used": used.extras.get(name, 0), "total": amount} for name, amount in most.extras.items()},
        "health": node.health,
    }


def _row(node: "NodeReport", silent_s: float | None) -> tuple[object, ...]:
    used, most = node.used, node.capability
    return (
        node.id,
        _state(node.state.name, silent_s),
        node.http_address,
        f"{node.containers - node.waiting} run, {node.waiting} wait" if node.waiting else node.containers,
        f"{used.memory_mb}/{most.memory_mb}",
        f"{used.vcores}/{most.vcores}",
        ", ".join(f"{name} {used.extras.get(name, 0)}/{amount}" for name, amount in most.extras.items()),
        shortened_error(node.health, _HEALTH_CHARS),
    )


@node.command("drain")
@click.argument("names", metavar="HOST[:PORT]...", nargs=-1, required=True)
@json_option
@with_conf
def drain(conf: Configuration, names: tuple[str, ...], as_json: bool) -> None:
    """Give nodes no more containers; what runs there ends by itself.

    The NodeManager stays, and takes containers again after `yaq node undrain`. Neither a restart of the
    ResourceManager nor one of the NodeManager changes that. HOST is all nodes there. `yaq rm refresh nodes --now` ends
    what still runs.

    \b
    Example:
      yaq node drain worker7
    """
    _change(conf, names, as_json, is_drained=True)


@node.command("undrain")
@click.argument("names", metavar="HOST[:PORT]...", nargs=-1, required=True)
@json_option
@with_conf
def undrain(conf: Configuration, names: tuple[str, ...], as_json: bool) -> None:
    """Give nodes containers again that were drained.

    HOST is all nodes there, also those that were drained as HOST:PORT.

    \b
    Example:
      yaq node undrain worker7
    """
    _change(conf, names, as_json, is_drained=False)


def _change(conf: Configuration, names: tuple[str, ...], as_json: bool, *, is_drained: bool) -> None:
    from yaqd.cli.exits import BAD_INPUT, CommandError
    from yaqd.cli.refresh import Administration, said_draining
    from yaqd.proto import yarn_admin_pb2 as pb
    from yaqd.proto.protocols import ResourceManagerAdministrationProtocol as Protocol

    request = pb.RefreshNodesRequest(**{"yaq_drain" if is_drained else "yaq_undrain": names})  # type: ignore[arg-type]
    with Administration(conf) as rm:
        rm.call("nothing is drained" if is_drained else "nothing is let back in", Protocol.refreshNodes, request)
        draining = rm.draining()
    drains = [{name.lower() for name in (node, node.rpartition(":")[0])} for node in draining]
    if is_drained and not any(name.lower() in found for name in names for found in drains):
        raise CommandError("this ResourceManager drains no nodes by name: name them in its exclude file", BAD_INPUT)
    if as_json:
        print_json({"draining": draining})
    else:
        click.echo(said_draining(draining))


def _state(state: str, silent_s: float | None) -> str:
    return state if silent_s is None else f"{state}, silent for {duration(silent_s * 1000)}"


def _silent(conf: Configuration) -> dict[str, float]:
    """For how long nodes have not been heard of that should have been; a stock ResourceManager does not say."""
    from yaqd.cli.exits import CommandError
    from yaqd.cli.rm_web import get_json

    try:
        nodes: list[dict[str, Any]] = get_json(conf, "/ws/v1/yaq/nodes")["nodes"]
        return {str(node["id"]): float(node["silentS"]) for node in nodes if node["silentS"] is not None}
    except (CommandError, KeyError, TypeError, ValueError):
        return {}
