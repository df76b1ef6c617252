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


def running_nodes(conf_dir: Path) -> set[str] | None:
    """Return `host:port` of the nodes that are there, drained ones too; None when no ResourceManager answers."""
    host, port = Configuration.load(conf_dir).get_address("yarn.resourcemanager.address")
    client = BlockingRpcClient(host, port, user=user_name(), timeout_s=_ANSWER_TIMEOUT_S, connect_retries=NO_RETRY)
    with client:
        try:
            request = service.GetClusterNodesRequest(nodeStates=[common.NS_RUNNING, common.NS_DECOMMISSIONING])
            found = client.call(ApplicationClientProtocol.getClusterNodes, request).nodeReports
            return {f"{report.nodeId.host}:{report.nodeId.port}" for report in found}
        except RpcError:
            return None
