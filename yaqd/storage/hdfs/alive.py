"""Whether an HDFS answers, within a time: for those who would otherwise start something that cannot work without it.

A port that accepts proves little: the kernel accepts for a NameNode that is stopped or stuck. So a question is asked,
and any answer will do, a refusal too.
"""

import time
from typing import Final

from yaqd.config import Configuration
from yaqd.ipc import NO_RETRY, BlockingRpcClient, RemoteException, RpcError
from yaqd.proto import hdfs_pb2
from yaqd.proto.protocols import NamenodeProtocol
from yaqd.storage.errors import StorageUnavailable
from yaqd.storage.hdfs.namenode import namenode_addresses

#: a NameNode that only waits for the active one of its name service: no answer by itself
_STANDBY: Final = "StandbyException"


def check_namenode(authority: str, conf: Configuration, user: str, timeout_s: float) -> None:
    """Block for up to `timeout_s`. Raise StorageUnavailable, in one line, where no NameNode at work answers."""
    deadline = time.monotonic() + timeout_s
    problem = ""
    try:
        addresses = namenode_addresses(authority, conf)
    except ValueError:
        raise StorageUnavailable(f"hdfs://{authority} is no address of a NameNode: use hdfs://HOST:PORT") from None
    for index, (host, port) in enumerate(addresses):
        # a share each, so that one that is stuck leaves time for the others
        share_s = (deadline - time.monotonic()) / (len(addresses) - index)
        problem = _problem(host, port, user, max(0.001, share_s))
        if not problem:
            return
    raise StorageUnavailable(
        f"the file system hdfs://{authority} does not answer: {problem}: start it, or check its address"
    )


def _problem(host: str, port: int, user: str, timeout_s: float) -> str:
    """What is wrong with a NameNode; "" when it answers."""
    request = hdfs_pb2.GetBlockLocationsRequest(src="/", offset=0, length=1)
    with BlockingRpcClient(host, port, user=user, timeout_s=timeout_s, connect_retries=NO_RETRY) as client:
        try:
            client.call(NamenodeProtocol.getBlockLocations, request)
        except RemoteException as error:
            # the root is no file, which it says in its own words
            return f"{host}:{port} is on standby" if error.class_name.endswith(_STANDBY) else ""
        except RpcError as error:
            return str(error)
    return ""
