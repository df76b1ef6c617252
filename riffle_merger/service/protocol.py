"""The merger's protocol on Hadoop RPC, and the errors that it answers with.

A job manager proves its job's token and sees that job alone; the node proves the secret it started the merger with.
"""

from typing import Final

from yaqd.ipc.errors import NamedRemoteException
from yaqd.proto import riffle_pb2 as pb
from yaqd.proto.protocols import Method

#: service metadata of startContainers that carries the merger's port, four bytes big-endian: 0 while it is being
#: started, absent where there is none
MERGER_SERVICE: Final = "riffle_merger"
#: and what its disk does (`DiskFacts.pack`), once that is known
DISK_SERVICE: Final = "riffle_disk"


class RiffleMergerProtocol:
    NAME: Final = "yaqd.riffle.RiffleMergerProtocol"
    merge: Final = Method(NAME, "merge", pb.MergeRequest, pb.MergeResponse)
    cancel: Final = Method(NAME, "cancel", pb.CancelRequest, pb.CancelResponse)
    status: Final = Method(NAME, "status", pb.StatusRequest, pb.StatusResponse)
    addJob: Final = Method(NAME, "addJob", pb.AddJobRequest, pb.AddJobResponse)
    forgetJob: Final = Method(NAME, "forgetJob", pb.ForgetJobRequest, pb.ForgetJobResponse)


class MergeFailed(NamedRemoteException):
    """The merge came to nothing and left nothing; the originals are as they were."""

    JAVA_CLASS = "yaqd.riffle.MergeFailed"


class MergeCancelled(NamedRemoteException):
    """Somebody entitled to has cancelled the merge, or its job is over."""

    JAVA_CLASS = "yaqd.riffle.MergeCancelled"


class MergeRefused(NamedRemoteException):
    """The request itself cannot be carried out: unknown job, bad names, too large, too many that wait."""

    JAVA_CLASS = "yaqd.riffle.MergeRefused"
