"""What a node has been told of the queue that it is to keep."""

from rm.settings.queues import QueueSettings
from yaqd.model import ApplicationId, Resource
from yaqd.proto import yarn_server_pb2 as server


class Told:
    """What a node was told since it registered."""

    __slots__ = ("files_read_ms", "jobs", "masters", "settings", "settings_for")

    def __init__(self) -> None:
        self.settings: server.NodeQueueSettings | None = None
        #: the ResourceManager's settings and the node's bound, from which these were made; None: not yet
        self.settings_for: tuple[QueueSettings, int] | None = None
        self.files_read_ms = 0
        #: for which masters it keeps room
        self.masters: dict[ApplicationId, Resource] = {}
        #: version of the job's facts
        self.jobs: dict[ApplicationId, int] = {}
