"""Where HDFS keeps the blocks of a file: ClientProtocol.getBlockLocations, through our own RPC client."""

from typing import Final

from yaqd.config import Configuration
from yaqd.ipc import BlockingRpcClient, RemoteException, RpcError
from yaqd.proto import hdfs_pb2
from yaqd.proto.protocols import NamenodeProtocol
from yaqd.storage.errors import PathNotFound, StorageNotReady, StorageUnavailable
from yaqd.storage.filesystem import BlockLocation

_PORT: Final = 8020
_TIMEOUT_S: Final = 30.0


class BlockLocator:
    """Asks the NameNode; connects at the first question."""

    def __init__(self, authority: str, conf: Configuration, user: str) -> None:
        self._authority = authority
        self._addresses = namenode_addresses(authority, conf)
        self._user = user
        self._client: BlockingRpcClient | None = None

    def find(self, path: str, start: int, length: int) -> list[BlockLocation]:
        """The blocks that overlap the range, in the order of the file."""
        request = hdfs_pb2.GetBlockLocationsRequest(src=path, offset=start, length=length)
        response = self._ask(path, request)
        if not response.HasField("locations"):
            raise PathNotFound(f"hdfs://{self._authority}{path} does not exist", path=path)
        return [
            BlockLocation(block.offset, block.b.numBytes, tuple(sorted({node.id.hostName for node in block.locs})))
            for block in response.locations.blocks
        ]

    def _ask(self, path: str, request: hdfs_pb2.GetBlockLocationsRequest) -> hdfs_pb2.GetBlockLocationsResponse:
        """The active NameNode's answer; the others of a name service refuse, and are asked once each."""
        problem = ""
        for _ in self._addresses:
            host, port = self._addresses[0]
            if self._client is None:
                self._client = BlockingRpcClient(host, port, user=self._user, timeout_s=_TIMEOUT_S)
            try:
                return self._client.call(NamenodeProtocol.getBlockLocations, request, idempotent=True)
            except RemoteException as error:
                if error.class_name.endswith("FileNotFoundException"):
                    raise PathNotFound(f"hdfs://{self._authority}{path} does not exist", path=path) from None
                if error.class_name.endswith(("SafeModeException", "RetriableException")):
                    message = error.message.splitlines()[0]
                    raise StorageNotReady(f"hdfs://{self._authority}{path}: {message}", path=path) from None
                problem = f"{error.class_name.rpartition('.')[2]}: {error.message.splitlines()[0]}"
                if not error.class_name.endswith("StandbyException"):
                    break
            except RpcError as error:
                problem = str(error)
            self._client.close()
            self._client = None
            self._addresses.append(self._addresses.pop(0))
        raise StorageUnavailable(f"no block locations of hdfs://{self._authority}{path}: {problem}", path=path)


def namenode_addresses(authority: str, conf: Configuration) -> list[tuple[str, int]]:
    """Host and port of the NameNode, or of each NameNode of a name service."""
    names = conf.get_list(f"dfs.ha.namenodes.{authority}")
    if names:
        return [conf.get_address(f"dfs.namenode.rpc-address.{authority}.{name}") for name in names]
    host, colon, port = authority.rpartition(":")
    return [(host, int(port))] if colon else [(authority, _PORT)]
