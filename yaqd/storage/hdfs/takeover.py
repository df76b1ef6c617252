"""Taking over a file of HDFS whose writer failed, so that it can be appended to.

The NameNode lets one writer go on with a file, and knows it by its name alone. It says whose a file is to anyone who
wants to append to it; in that name the block that could not be written is given back (`abandonBlock`, as Hadoop's own
client does). The file is closed behind its last whole block. That may not be enough, where more was written of the last
block than is still known. Then the NameNode has the DataNodes that live agree on that block (`recoverLease`): all that
they acknowledged is there then.
"""

import re
import socket
import time
import uuid
from typing import Final

from yaqd.proto import hdfs_pb2
from yaqd.proto.protocols import NamenodeProtocol
from yaqd.storage.errors import StorageUnavailable
from yaqd.storage.hdfs.namenode import LeaseHeld, NamenodeAsker


class BlockLost(StorageUnavailable):
    """A block whose DataNodes do not answer."""


#: a primary DataNode hears of a recovery with its next heartbeat, after 3 s, and tries dead ones in vain meanwhile
_WITHIN_S: Final = 30.0
_FIRST_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 1.0
_PROBE_S: Final = 3.0
_HOLDER: Final = re.compile(r"currently owned by (?P<holder>\S+)|because (?P<same>\S+) is already the current lease")


def take_over(namenode: NamenodeAsker, path: str, wanted: int) -> int:
    """Close the file and return its length (bytes), `wanted` at least. Raise StorageError where that cannot be had.

    Every block of it has a DataNode that answers.
    """
    length = _closed(namenode, path, wanted)
    if length < wanted:
        raise StorageUnavailable(
            f"{path}: of {wanted} bytes that were written {wanted - length} are lost with the DataNode", path=path
        )
    _check_readable(namenode, path, length)
    return length


def _closed(namenode: NamenodeAsker, path: str, wanted: int) -> int:
    deadline = time.monotonic() + _WITHIN_S
    pause_s = _FIRST_PAUSE_S
    problem = ""
    while time.monotonic() < deadline:
        try:
            located = namenode.located(path, 0, 1)
            if not located.underConstruction:
                return located.fileLength
            _help_to_close(namenode, path, located, wanted)
        except BlockLost:
            raise
        except StorageUnavailable as error:
            problem = f" ({error})"  # the file may be another's by now: it is looked at again
        time.sleep(pause_s)
        pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)
    raise StorageUnavailable(f"{path}: HDFS did not close it within {_WITHIN_S:.0f} s{problem}", path=path)


def _help_to_close(namenode: NamenodeAsker, path: str, located: "hdfs_pb2.LocatedBlocks", wanted: int) -> None:
    is_last_whole = located.isLastBlockComplete or not located.HasField("lastBlock")
    if located.fileLength < wanted and not is_last_whole:
        _check_answered(path, located.lastBlock, {})
        request = hdfs_pb2.RecoverLeaseRequest(src=path, clientName=_own_name())
        namenode.ask(path, NamenodeProtocol.recoverLease, request, "no recovery of")
        return
    holder = _holder(namenode, path)
    if not is_last_whole:
        abandoned = hdfs_pb2.AbandonBlockRequest(b=located.lastBlock.b, src=path, holder=holder)
        namenode.ask(path, NamenodeProtocol.abandonBlock, abandoned, "no block given back of")
    completed = hdfs_pb2.CompleteRequest(src=path, clientName=holder)
    namenode.ask(path, NamenodeProtocol.complete, completed, "no end of")


def _holder(namenode: NamenodeAsker, path: str) -> str:
    """Whose the file is. Ours, if it was nobody's any more."""
    own = _own_name()
    try:
        request = hdfs_pb2.AppendRequest(src=path, clientName=own)
        namenode.ask(path, NamenodeProtocol.append, request, "no appending to")
    except LeaseHeld as held:
        match = _HOLDER.search(str(held))
        if match is None:
            raise StorageUnavailable(f"{path}: HDFS does not say who writes it: {held}", path=path) from None
        return match["holder"] or match["same"]
    return own


def _own_name() -> str:
    return f"yaqd-{uuid.uuid4()}"


def _check_readable(namenode: NamenodeAsker, path: str, length: int) -> None:
    """StorageUnavailable if a block is on DataNodes alone that do not answer: the file would be useless."""
    answers: dict[tuple[str, int], bool] = {}
    for block in namenode.located(path, 0, length).blocks if length else ():
        _check_answered(path, block, answers)


def _check_answered(path: str, block: "hdfs_pb2.LocatedBlock", answers: dict[tuple[str, int], bool]) -> None:
    """`answers`: of DataNodes that were asked already."""
    for node in block.locs:
        address = (node.id.ipAddr, node.id.xferPort)
        if address not in answers:
            answers[address] = _answers(address)
        if answers[address]:
            return
    names = ", ".join(f"{node.id.hostName}:{node.id.xferPort}" for node in block.locs) or "no DataNode"
    raise BlockLost(f"{path}: its bytes from {block.offset} on are on {names} alone, which does not answer", path=path)


def _answers(address: tuple[str, int]) -> bool:
    try:
        socket.create_connection(address, _PROBE_S).close()
    except OSError:
        return False
    return True
