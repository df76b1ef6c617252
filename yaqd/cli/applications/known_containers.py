"""Which containers an application had, and which nodes may have their logs.

The ResourceManager knows those of the attempts that it has made itself, a job's history file the tasks of its last
attempt. Of an attempt that nobody else knows, nodes of ours say what they find on their disks.
"""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from yaqd.cli.applications.node_logs import LoggedContainer, logged_containers
from yaqd.config import Configuration

if TYPE_CHECKING:
    from tez_adapter.client.rm_client import ApplicationReport, NodeReport, RmClient
    from yaqd.model import ApplicationId

#: nodes of a cluster that are all asked for an application master that nobody knows the node of
_ASKED_FOR_MASTERS: Final = 16
#: nodes that are asked for what they have of an attempt that nobody else knows, and how many at once
_ASKED_FOR_LOGS: Final = 512
_ASKED_AT_ONCE: Final = 16


def containers_of(
    conf: Configuration, rm: "RmClient", report: "ApplicationReport"
) -> tuple[list[LoggedContainer], bool]:
    """List all known containers of the application in the order of their ids.

    Also returns whether the ResourceManager forgot some.
    """
    placed, over, forgotten = _placed(rm, report)
    placed |= _from_history(conf, report.id)
    nodes = rm.nodes()
    known = Counter(_attempt_number(name) for name in placed)
    last = report.attempt.attempt if report.attempt is not None else 0
    # of which nothing is known but where its master was, if that
    thin = {number for number in range(1, last + 1) if known[number] <= 1}
    if thin and (report.state.is_final or thin != {last}):
        placed |= {name: node for name, node in _found_on(nodes, report.id).items() if name not in placed}
    if len(nodes) <= _ASKED_FOR_MASTERS:
        # the history file has the tasks alone
        attempts = {_attempt(name) for name in placed if _attempt_number(name) in forgotten}
        placed |= {name: "" for name in (f"{attempt}_000001" for attempt in attempts) if name not in placed}
    return _logged(placed, nodes, over, is_final=report.state.is_final), bool(forgotten)


def on_nodes(rm: "RmClient", application_id: "ApplicationId") -> list[LoggedContainer]:
    """List a forgotten application's containers, as far as nodes have their logs.

    It is for an application that the ResourceManager has forgotten.
    """
    nodes = rm.nodes()
    return _logged(_found_on(nodes, application_id), nodes, set(), is_final=True)


def _logged(
    placed: dict[str, str], nodes: "Sequence[NodeReport]", over: set[str], *, is_final: bool
) -> list[LoggedContainer]:
    """`placed`: containers with their nodes. In the order of their ids."""
    first: dict[str, str] = {}
    for name in sorted(placed):
        first.setdefault(_attempt(name), name)  # an attempt's first container is its application master
    found = []
    for name, node in sorted(placed.items()):
        asked = _nodes_of(node, nodes)
        (there, web), *others = asked or [(node, "")]
        lost = "" if any(known == node for known, _ in asked) else node
        is_master = first[_attempt(name)] == name
        found.append(LoggedContainer(name, there, web, is_master, is_final or name in over, tuple(others), lost))
    return found


def _found_on(nodes: "Sequence[NodeReport]", application_id: "ApplicationId") -> dict[str, str]:
    """Containers with their nodes, as nodes find logs of the application on their disks."""
    from concurrent.futures import ThreadPoolExecutor

    from yaqd.model import NodeState

    asked = [node for node in nodes if node.state in (NodeState.RUNNING, NodeState.UNHEALTHY)][:_ASKED_FOR_LOGS]
    if not asked:
        return {}
    with ThreadPoolExecutor(_ASKED_AT_ONCE) as pool:
        lists = pool.map(lambda node: logged_containers(node.http_address, str(application_id)), asked)
        return {name: str(node.id) for node, names in zip(asked, lists, strict=True) for name in names}


def _nodes_of(node: str, nodes: "Sequence[NodeReport]") -> list[tuple[str, str]]:
    """Those that may have what a container wrote at `node`, with their web addresses: it, if it is there.

    Else those of its host, since one that was started anew may have taken another port; all for a node without a name.
    """
    from yaqd.model import NodeState

    away = (NodeState.LOST, NodeState.SHUTDOWN, NodeState.REBOOTED, NodeState.DECOMMISSIONED)
    there = [found for found in nodes if found.state not in away]
    host = node.rpartition(":")[0]
    chosen = (
        [found for found in there if str(found.id) == node]
        or [found for found in there if found.id.host == host or not node]
        or [found for found in nodes if str(found.id) == node]
    )
    return sorted((str(found.id), found.http_address) for found in chosen)


def _placed(rm: "RmClient", report: "ApplicationReport") -> tuple[dict[str, str], set[str], set[int]]:
    """Container ids with their nodes, those that have ended, and numbers of attempts that nothing is known of."""
    from yaqd.ipc import RemoteException
    from yaqd.model import ApplicationAttemptId, ContainerState

    placed: dict[str, str] = {}
    over: set[str] = set()
    forgotten: set[int] = set()
    last = report.attempt.attempt if report.attempt is not None else 0
    for number in range(1, last + 1):
        try:
            reports = rm.containers(ApplicationAttemptId(report.id, number))
        except RemoteException:
            forgotten.add(number)  # the history may know
            continue
        placed |= {str(c.id): str(c.node) for c in reports if c.node is not None}
        over |= {str(c.id) for c in reports if c.state == ContainerState.COMPLETE}
    return placed, over, forgotten


def _from_history(conf: Configuration, application_id: "ApplicationId") -> dict[str, str]:
    from tez_adapter.history import NoHistory, read_history
    from yaqd.storage import StorageError

    try:
        attempts = read_history(conf, application_id).attempts
    except (NoHistory, StorageError):
        return {}
    return {str(a["container"]): str(a["node"]) for a in attempts if a.get("container") and a.get("node")}


def _attempt(container: str) -> str:
    """The application attempt part of a container id."""
    return container.rpartition("_")[0]


def _attempt_number(container: str) -> int:
    return int(container.split("_")[-2])
