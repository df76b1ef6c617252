"""What the ResourceManager has told this node of itself, and the keys that it hands out."""

from dataclasses import dataclass, field

from yaqd.model import NodeId
from yaqd.security import VerifierKeys


@dataclass(slots=True)
class NodeRegistration:
    """Filled in by the heartbeat."""

    #: this node as everybody names it
    node_id: NodeId
    #: -1 until the node is registered
    rm_identifier: int = -1
    #: the ResourceManager schedules virtual cores as well as memory
    counts_vcores: bool = False
    #: the ResourceManager gives this node containers to queue, and understands what is said of the queue
    fills_queues: bool = False
    #: NMTokens are signed with these
    nm_keys: VerifierKeys = field(default_factory=VerifierKeys)
    #: and container tokens with these
    container_keys: VerifierKeys = field(default_factory=VerifierKeys)
