"""Writing to HDFS past DataNodes that are dead and that the NameNode does not know to be.

hdfs-native has no way to leave a node out: it takes the nodes that the NameNode gives it for each block. It gives up
when the first of them is gone, or, some packets later, another one of the pipeline. So the last bytes of a file are
kept, and where the library fails they are written again by way of WebHDFS: all of a file that has no more, or as an
addition to what HDFS has of a longer one.

What can be survived follows from how much is kept (`yaq.storage.hdfs.kept-memory`, 16 MB for each file that is open):
every node that was dead when its block began, as the library takes in 13 MB at most before it fails; a node that dies
in the middle of a block with several copies; and, with one copy, of a block of which no more than that was written.
Else the writer gets an error, as it does from Hadoop's own client, which keeps nothing. Rejected: a file for each block
and `concat` (which encrypted folders refuse), and smaller blocks (which the NameNode and the splits of the next job
would pay for, dead node or not).
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from yaqd.storage.errors import StorageError, StorageUnavailable
from yaqd.storage.hdfs.namenode import NamenodeAsker
from yaqd.storage.hdfs.takeover import take_over
from yaqd.storage.hdfs.web import WebHdfs, WebHdfsFile

_log: Final = logging.getLogger(__name__)
#: times that one failure is answered by writing again: a DataNode that is alive may itself be given dead ones to write
#: to, and its client does not survive every such moment
_TRIES: Final = 4
#: no try begins later than that after the failure
_WITHIN_S: Final = 60.0
#: bytes that are handed on at once, at most
_PIECE_BYTES: Final = 1 << 20
#: what is smaller is put together, so that keeping it costs no more than its bytes
_SMALL_BYTES: Final = 256 << 10


class Rescue(Protocol):
    """How a file is gone on with whose writer failed. Raises OSError, or StorageError where no other try would help."""

    def again(self) -> WebHdfsFile:
        """Return the file, empty."""
        ...

    def rest(self, wanted: int) -> tuple[int, WebHdfsFile]:
        """Return how long what HDFS has of the file is, `wanted` at least, and where more is to be written."""
        ...


class WebRescue:
    """By way of WebHDFS."""

    def __init__(self, web: WebHdfs, namenode: NamenodeAsker, path: str, options: Mapping[str, object]) -> None:
        """`options`: of CREATE."""
        self._web = web
        self._namenode = namenode
        self._path = path
        self._options = options

    def again(self) -> WebHdfsFile:
        return self._web.create(self._path, self._options)

    def rest(self, wanted: int) -> tuple[int, WebHdfsFile]:
        length = take_over(self._namenode, self._path, wanted)
        return length, self._web.append(self._path)


class SurvivingFile:
    """A file of the library's, or, where that fails, the same bytes by another way."""

    def __init__(
        self, file: Any, rescue: Rescue, is_final: Callable[[BaseException], bool], kept_bytes_max: int
    ) -> None:
        """`is_final`: of an error that another way to write would not avoid."""
        self._file = file
        self._rescue = rescue
        self._is_final = is_final
        self._kept_bytes_max = kept_bytes_max
        #: not handed on yet: less than a piece
        self._pending = bytearray()
        #: the last pieces that were handed on; they end at `_written`
        self._kept: deque[bytes] = deque()
        self._kept_bytes = 0
        #: bytes handed on
        self._written = 0
        #: it failed, and nothing helped
        self._is_lost = False

    def write(self, data: bytes | bytearray) -> None:
        if not self._pending and _SMALL_BYTES <= len(data) <= _PIECE_BYTES:
            self._hand_on(bytes(data))
            return
        rest = memoryview(data)
        while rest:
            room = _PIECE_BYTES - len(self._pending)
            self._pending += rest[:room]
            rest = rest[room:]
            if len(self._pending) == _PIECE_BYTES:
                self._hand_on_pending()

    def close(self) -> None:
        if self._pending:
            self._hand_on_pending()
        try:
            self._file.close()
        except (OSError, RuntimeError) as error:
            self._mend(error, is_last=True)

    def abort(self) -> None:
        """End without another try: the file will be removed."""
        if not self._is_lost:  # the library would ask for seconds whether a file that failed is complete
            self._file.close()

    def _hand_on_pending(self) -> None:
        piece = bytes(self._pending)
        self._pending.clear()
        self._hand_on(piece)

    def _hand_on(self, piece: bytes) -> None:
        self._keep(piece)
        try:
            self._file.write(piece)
        except (OSError, RuntimeError) as error:
            self._mend(error, is_last=False)

    def _keep(self, piece: bytes) -> None:
        self._kept.append(piece)
        self._kept_bytes += len(piece)
        self._written += len(piece)
        while self._kept_bytes > self._kept_bytes_max:
            self._kept_bytes -= len(self._kept.popleft())

    def _mend(self, error: OSError | RuntimeError, *, is_last: bool) -> None:
        """Until all was written, and closed if it is the last. Raises the last error where that does not help."""
        deadline = time.monotonic() + _WITHIN_S
        for _ in range(_TRIES):
            if self._is_final(error) or time.monotonic() > deadline:
                break
            _log.warning("HDFS: what was written last is written again by way of WebHDFS: %s", error)
            try:
                self._write_again()
                if is_last:
                    self._file.close()
            except OSError as another:
                error = another
            except StorageError:
                self._is_lost = True
                raise
            else:
                return
        self._is_lost = True
        raise error

    def _write_again(self) -> None:
        kept_from = self._written - self._kept_bytes
        if kept_from == 0:
            start, file = 0, self._rescue.again()
        else:
            start, file = self._rescue.rest(kept_from)
        if start > self._written:
            raise StorageUnavailable(f"HDFS has {start} bytes of a file of {self._written}")
        # only now: while the library's file lives, the library keeps the NameNode from giving it to another
        self._file = file
        at = kept_from
        for piece in self._kept:
            if at + len(piece) > start:
                self._file.write(piece[max(0, start - at) :])
            at += len(piece)
