"""Which nodes a cluster has, asked over the wire with one connection and no retries."""

from pathlib import Path

from yaqd.config import Configuration
from yaqd.config.variables import user_name
from yaqd.ipc import BlockingRpcClient, RpcError
from yaqd.ipc.retry import NO_RETRY
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_service_pb2 as service
from yaqd.proto.protocols import ApplicationClientProtocol

_ANSWER_TIMEOUT_S = 5.0


def unhealthy_nodes(conf_dir: Path) -> list[str]:
    """Return a line for each node that is there and takes no work as something is wrong with it."""
    found = _nodes(conf_dir, [common.NS_UNHEALTHY]) or []
    return [f"{report.nodeId.host}:{report.nodeId.port} is unhealthy: {report.health_report}" for report in found]


def running_nodes(conf_dir: Path) -> set[str] | None:
    """Return `host:port` of the nodes that are there, drained ones too; None when no ResourceManager answers."""
    found = _nodes(conf_dir, [common.NS_RUNNING, common.NS_DECOMMISSIONING])
    return None if found is None else {f"{report.nodeId.host}:{report.nodeId.port}" for report in found}


def _nodes(conf_dir: Path, states: list[common.NodeState]) -> list[common.NodeReport] | None:
    host, port = Configuration.load(conf_dir).get_address("yarn.resourcemanager.address")
    client = BlockingRpcClient(host, port, user=user_name(), timeout_s=_ANSWER_TIMEOUT_S, connect_retries=NO_RETRY)
    with client:
        try:
            request = service.GetClusterNodesRequest(nodeStates=states)
            return list(client.call(ApplicationClientProtocol.getClusterNodes, request).nodeReports)
        except RpcError:
            return None
