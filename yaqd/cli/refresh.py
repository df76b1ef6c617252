"""`yaq rm refresh`: what an administrator has changed in the ResourceManager's files counts from now on."""

from collections.abc import Callable
from typing import Any, Final

import click

from yaqd.cli.exits import BAD_INPUT, CommandError
from yaqd.cli.options import json_option, with_conf
from yaqd.cli.output import print_json
from yaqd.config import Configuration

_ADDRESS_KEY: Final = "yarn.resourcemanager.admin.address"
#: what can be read again -> what that is, for people
_WHAT: Final = {
    "queues": "capacity-scheduler.xml, what is preempted, and the queues at nodes (yaq.queue.*)",
    "nodes": "which files say who may be a node, and these files",
    "node-sizes": "dynamic-resources.xml",
    "admin-acl": "yarn.admin.acl",
    "service-acls": "hadoop-policy.xml",
    "proxy-users": "hadoop.proxyuser.*",
    "groups": "who is in which group",
    "max-priority": "yarn.cluster.max-application-priority",
}
#: Java's name of a refusal, which Hadoop puts before the text
_REFUSED: Final = "org.apache.hadoop.security.AccessControlException: "
_TIMEOUT_S: Final = 60.0
#: nodes that an answer names
_NAMED_MAX: Final = 20


@click.command("refresh")
@click.argument("what", nargs=-1, required=True, type=click.Choice(tuple(_WHAT)))
@click.option("--drain", metavar="TIME", help="nodes: those that leave may end what they run first, for so long.")
@click.option("--now", is_flag=True, help="nodes: those that are draining leave, what they run ends; no file is read.")
@json_option
@with_conf
def refresh(conf: Configuration, what: tuple[str, ...], drain: str | None, now: bool, as_json: bool) -> None:
    """Have the ResourceManager read again what has changed in its own files. A file with a fault changes nothing.

    \b
    queues        capacity-scheduler.xml, the settings of preemption and of queues at nodes (yaq.queue.*)
    nodes         yarn.resourcemanager.nodes.include-path and exclude-path, and the files there
    node-sizes    dynamic-resources.xml
    admin-acl     yarn.admin.acl
    service-acls  hadoop-policy.xml
    proxy-users   hadoop.proxyuser.*
    groups        hadoop.user.group.static.mapping.overrides; look-ups are forgotten
    max-priority  yarn.cluster.max-application-priority

    \b
    Example:
      yaq rm refresh queues
      yaq rm refresh nodes --drain 30m
    """
    if "nodes" not in what and (drain is not None or now):
        raise CommandError("--drain and --now go with `nodes`")
    if drain is not None and now:
        raise CommandError("--drain lets nodes end what they run, --now does not: use one of them")
    calls = _calls(_seconds(drain), now)
    done: list[dict[str, Any]] = []
    with Administration(conf) as rm:
        for name in dict.fromkeys(what):
            before = rm.draining() if name == "nodes" and now else []
            rm.call(f"{name} not refreshed", *calls[name])
            done.append({"refreshed": name, "what": _WHAT[name]})
            text = f"read: {_WHAT[name]}"
            if name == "nodes":
                done[-1]["draining"] = draining = rm.draining()
                if now:
                    done[-1]["left"] = left = sorted(set(before) - set(draining))
                    text = _said_left(left)
                text = f"{text}; {said_draining(draining)}"
            if not as_json:
                click.echo(text)
    if as_json:
        print_json(done)


def _seconds(text: str | None) -> int | None:
    from yaqd.config.values import parse_duration_ms

    if text is None:
        return None
    try:
        seconds = parse_duration_ms(text, "s") // 1000
    except ValueError as error:
        raise CommandError(f"--drain {text}: {error}") from None
    if not 0 < seconds < 1 << 31:
        raise CommandError(f"--drain {text}: give at least one second")
    return seconds


def _calls(drain_s: int | None, now: bool) -> dict[str, tuple[Any, Any]]:
    """Method and request for each."""
    from yaqd.proto import yarn_admin_pb2 as pb
    from yaqd.proto.protocols import ResourceManagerAdministrationProtocol as Protocol

    nodes = pb.RefreshNodesRequest(decommissionType=pb.FORCEFUL if now else pb.NORMAL)
    if drain_s is not None:
        nodes = pb.RefreshNodesRequest(decommissionType=pb.GRACEFUL, decommissionTimeout=drain_s)
    return {
        "queues": (Protocol.refreshQueues, pb.RefreshQueuesRequest()),
        "nodes": (Protocol.refreshNodes, nodes),
        "node-sizes": (Protocol.refreshNodesResources, pb.RefreshNodesResourcesRequest()),
        "admin-acl": (Protocol.refreshAdminAcls, pb.RefreshAdminAclsRequest()),
        "service-acls": (Protocol.refreshServiceAcls, pb.RefreshServiceAclsRequest()),
        "proxy-users": (
            Protocol.refreshSuperUserGroupsConfiguration,
            pb.RefreshSuperUserGroupsConfigurationRequest(),
        ),
        "groups": (Protocol.refreshUserToGroupsMappings, pb.RefreshUserToGroupsMappingsRequest()),
        "max-priority": (Protocol.refreshClusterMaxPriority, pb.RefreshClusterMaxPriorityRequest()),
    }


def said_draining(nodes: list[str]) -> str:
    """Says which nodes end what they run and take nothing new."""
    if not nodes:
        return "no node is draining"
    return f"{len(nodes)} nodes are draining: {_list(nodes)}" if len(nodes) > 1 else f"1 node is draining: {nodes[0]}"


def _said_left(nodes: list[str]) -> str:
    if not nodes:
        return "no node was draining"
    many = f"{len(nodes)} nodes were" if len(nodes) > 1 else "1 node was"
    return f"{many} draining and left at once: {_list(nodes)}"


def _list(nodes: list[str]) -> str:
    return ", ".join(nodes[:_NAMED_MAX]) + (", ..." if len(nodes) > _NAMED_MAX else "")


class Administration:
    """The ResourceManager's administration port, as a stock `yarn rmadmin` finds it too."""

    def __init__(self, conf: Configuration) -> None:
        from tez_adapter.client.rm_client import RmUnavailable
        from yaqd.config.reach import require_cluster
        from yaqd.ipc import BlockingRpcClient, RemoteException, RetryPolicy, RpcError
        from yaqd.storage.paths import hadoop_user

        require_cluster(conf)
        self._unavailable: Callable[[str], Exception] = RmUnavailable
        self._refused, self._silent = RemoteException, RpcError
        self._host, self._port = conf.get_address(_ADDRESS_KEY)
        self._client = BlockingRpcClient(
            self._host,
            self._port,
            user=hadoop_user(),
            timeout_s=_TIMEOUT_S,
            connect_retries=RetryPolicy(attempts=3, first_delay_s=0.1, delay_max_s=0.5),
        )

    def __enter__(self) -> "Administration":
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def draining(self) -> list[str]:
        """Lists the nodes that are draining."""
        from yaqd.proto import convert
        from yaqd.proto import yarn_admin_pb2 as pb
        from yaqd.proto.protocols import ResourceManagerAdministrationProtocol as Protocol

        method = Protocol.checkForDecommissioningNodes
        answer = self.call("draining nodes not listed", method, pb.CheckForDecommissioningNodesRequest())
        return sorted(str(convert.node_id(node)) for node in answer.decommissioningNodes)

    def call(self, failure: str, method: Any, request: Any) -> Any:
        """Raises CommandError with the ResourceManager's refusal."""
        try:
            return self._client.call(method, request, idempotent=True)
        except self._refused as error:
            message = error.message.removeprefix(_REFUSED)
            remedy = "; yarn.admin.acl says who may" if message != error.message else ""
            raise CommandError(f"{failure}: {message}{remedy}", BAD_INPUT) from None
        except self._silent as error:
            raise self._unavailable(
                f"no ResourceManager at {self._host}:{self._port} ({_ADDRESS_KEY}): {error}; start it, or name another "
                f"with HADOOP_CONF_DIR or -D {_ADDRESS_KEY}=HOST:PORT"
            ) from None
