"""Features of Hadoop's that do not exist here.

Empty lists where clients look around; where they want something, the exceptions that Hadoop has where a feature is off,
with words that send nobody looking for a key: none turns it on.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from yaqd.ipc import RpcServer
from yaqd.ipc.absent import EmptyAnswer, Refusal
from yaqd.ipc.errors import FeatureNotEnabled, InvalidLabelResourceRequest, UnsupportedOperation, YarnError
from yaqd.proto.protocols import ApplicationClientProtocol as Client
from yaqd.proto.protocols import Method
from yaqd.proto.protocols import ResourceManagerAdministrationProtocol as Admin

_EMPTY: Final[tuple[Method[Any, Any], ...]] = (
    Client.getClusterNodeLabels,
    Client.getNodeToLabels,
    Client.getLabelsToNodes,
    Client.getClusterNodeAttributes,
    Client.getAttributesToNodes,
    Client.getNodesToAttributes,
)
_NO_PROFILES: Final = Refusal(
    FeatureNotEnabled,
    "This ResourceManager has no resource profiles, and no setting gives it any: ask for memory, cores and further"
    " resources by their names and amounts",
)
_NO_RESERVATIONS: Final = Refusal(
    YarnError,
    "This ResourceManager has no reservations, and no setting gives it any: give a queue the capacity, or submit when"
    " it is wanted",
)
_REFUSED: Final[dict[Method[Any, Any], Refusal]] = {
    Client.getResourceProfiles: _NO_PROFILES,
    Client.getResourceProfile: _NO_PROFILES,
    Client.getNewReservation: _NO_RESERVATIONS,
    Client.submitReservation: _NO_RESERVATIONS,
    Client.updateReservation: _NO_RESERVATIONS,
    Client.deleteReservation: _NO_RESERVATIONS,
    Client.listReservations: _NO_RESERVATIONS,
}
_NO_LABELS: Final = Refusal(
    YarnError,
    "java.io.IOException: This ResourceManager has no node labels, and yarn.node-labels.enabled gives it none",
)


def _routers(name: str, what: str) -> Refusal:
    return Refusal(YarnError, f"It is not allowed to call the RM's {name} Please call Router's {what}.")


_ABSENT_ADMINISTRATION: Final[dict[Method[Any, Any], Refusal]] = {
    Admin.addToClusterNodeLabels: _NO_LABELS,
    Admin.removeFromClusterNodeLabels: _NO_LABELS,
    Admin.replaceLabelsOnNodes: _NO_LABELS,
    Admin.mapAttributesToNodes: Refusal(
        UnsupportedOperation, "This ResourceManager has no node attributes, and no setting gives it any"
    ),
}


#: what refusals call a method, where it is not its name
_OPERATIONS: Final = {"replaceLabelsOnNodes": "replaceLabelsOnNode"}

_ROUTERS: Final[dict[Method[Any, Any], Refusal]] = {
    Admin.deregisterSubCluster: _routers(
        "deregisterSubCluster to set the subCluster(s) state to SC_LOST,", "deregisterSubCluster to set"
    ),
    Admin.saveFederationQueuePolicy: _routers("saveFederationQueuePolicy. ", "saveFederationQueuePolicy to set Policy"),
    Admin.batchSaveFederationQueuePolicies: _routers(
        " batchSaveFederationQueuePolicies. ", "batchSaveFederationQueuePolicies to set Policies"
    ),
    Admin.listFederationQueuePolicies: _routers(
        " listFederationQueuePolicies. ", "listFederationQueuePolicies to list Policies"
    ),
    Admin.deleteFederationApplication: _routers(
        " deleteFederationApplication. ", "deleteFederationApplication to delete Application"
    ),
    Admin.getFederationSubClusters: _routers(
        " getFederationSubClusters. ", "getFederationSubClusters to get SubClusters"
    ),
    Admin.deleteFederationPoliciesByQueues: _routers(
        " deleteFederationQueuePoliciesByQueues. ", "deleteFederationQueuePoliciesByQueues to delete Policies"
    ),
}


def check_no_label(expression: str) -> None:
    """Raises InvalidLabelResourceRequest for a request that wants nodes with a label (SchedulerUtils)."""
    if expression:
        raise InvalidLabelResourceRequest(
            "Invalid resource request, this ResourceManager has no node labels but request contains label expression"
        )


def register_absent_features(server: RpcServer) -> None:
    for method in _EMPTY:
        server.register(method, EmptyAnswer(method))
    for method, answer in _REFUSED.items():
        server.register(method, answer)


def register_absent_administration(server: RpcServer, check: Callable[..., None]) -> None:
    """Registers what there is not. A router's methods are refused to everybody alike.

    `check(caller, operation=...)` raises for callers who are no administrators.
    """
    for method, answer in _ABSENT_ADMINISTRATION.items():
        operation = _OPERATIONS.get(method.name, method.name)
        server.register(method, answer.checked(partial(check, operation=operation)))
    for method, refusal in _ROUTERS.items():
        server.register(method, refusal)
