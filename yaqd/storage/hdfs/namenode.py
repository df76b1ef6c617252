"""What a NameNode is asked through our own RPC client, because the library does not: where the blocks of a file are,
what a user may do where, and a file whose writer failed to be closed.
"""

from typing import Final, TypeVar

from google.protobuf.message import Message

from yaqd.config import Configuration
from yaqd.ipc import NO_RETRY, BlockingRpcClient, RemoteException, RetryPolicy, RpcError
from yaqd.proto import hdfs_pb2
from yaqd.proto.protocols import Method, NamenodeProtocol
from yaqd.storage.errors import (
    NotAFile,
    PathDenied,
    PathNotFound,
    StorageError,
    StorageNotReady,
    StorageUnavailable,
)
from yaqd.storage.filesystem import BlockLocation

_PORT: Final = 8020
_TIMEOUT_S: Final = 30.0
_STANDBY: Final = "StandbyException"


class LeaseHeld(StorageError):
    """Another writer has the file open; the message is the NameNode's."""


#: a considered answer: about the path, or that it will know later
_CONSIDERED: Final[dict[str, type[StorageError]]] = {
    "AccessControlException": PathDenied,
    "ParentNotDirectoryException": NotAFile,
    "SafeModeException": StorageNotReady,
    "RetriableException": StorageNotReady,
    "AlreadyBeingCreatedException": LeaseHeld,
    "RecoveryInProgressException": StorageUnavailable,
}

Req = TypeVar("Req", bound=Message)
Resp = TypeVar("Resp", bound=Message)


class NamenodeAsker:
    """Asks the NameNode; connects at the first question."""

    def __init__(self, authority: str, conf: Configuration, user: str) -> None:
        self._authority = authority
        self._addresses = namenode_addresses(authority, conf)
        self._user = user
        self._client: BlockingRpcClient | None = None

    def find(self, path: str, start: int, length: int) -> list[BlockLocation]:
        """Return the blocks that overlap the range, in the order of the file."""
        return [
            BlockLocation(block.offset, block.b.numBytes, tuple(sorted({node.id.hostName for node in block.locs})))
            for block in self.located(path, start, length).blocks
        ]

    def located(self, path: str, start: int, length: int) -> "hdfs_pb2.LocatedBlocks":
        """Return those blocks, and how it stands with the file."""
        request = hdfs_pb2.GetBlockLocationsRequest(src=path, offset=start, length=length)
        response = self.ask(path, NamenodeProtocol.getBlockLocations, request, "no block locations of")
        if not response.HasField("locations"):
            raise PathNotFound(f"hdfs://{self._authority}{path} does not exist", path=path)
        return response.locations

    def check_access(self, path: str, action: "hdfs_pb2.FsAction") -> None:
        """Raise PathDenied unless the user may do this there."""
        request = hdfs_pb2.CheckAccessRequest(path=path, mode=action)
        self.ask(path, NamenodeProtocol.checkAccess, request, "no answer about the rights on")

    def ask(self, path: str, method: Method[Req, Resp], request: Req, missed: str) -> Resp:
        """Return the active NameNode's answer; the others of a name service refuse, and are asked once each."""
        problem = ""
        for _ in self._addresses:
            host, port = self._addresses[0]
            if self._client is None:
                # one of several that is dead is not waited for: another may be active
                retries = RetryPolicy() if len(self._addresses) == 1 else NO_RETRY
                self._client = BlockingRpcClient(
                    host, port, user=self._user, timeout_s=_TIMEOUT_S, connect_retries=retries
                )
            try:
                return self._client.call(method, request, idempotent=True)
            except RemoteException as error:
                short = error.class_name.rpartition(".")[2]
                line = (error.message.splitlines() or [""])[0]
                if short == "FileNotFoundException":
                    raise PathNotFound(f"hdfs://{self._authority}{path} does not exist", path=path) from None
                if short in _CONSIDERED:
                    raise _CONSIDERED[short](f"hdfs://{self._authority}{path}: {line}", path=path) from None
                problem = f"{short}: {line}"
                if short != _STANDBY:
                    break
            except RpcError as error:
                problem = str(error)
            self._client.close()
            self._client = None
            self._addresses.append(self._addresses.pop(0))
        raise StorageUnavailable(f"{missed} hdfs://{self._authority}{path}: {problem}", path=path)


def namenode_addresses(authority: str, conf: Configuration) -> list[tuple[str, int]]:
    """Return host and port of the NameNode, or of each NameNode of a name service."""
    names = conf.get_list(f"dfs.ha.namenodes.{authority}")
    if names:
        return [conf.get_address(f"dfs.namenode.rpc-address.{authority}.{name}") for name in names]
    host, colon, port = authority.rpartition(":")
    return [(host, int(port))] if colon else [(authority, _PORT)]
