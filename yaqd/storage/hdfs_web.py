"""Writing to HDFS past a DataNode that is dead and that the NameNode does not know to be.

hdfs-native has no way to leave a node out: it takes the nodes that the NameNode gives it, and gives up when the first
of them is gone, or, some packets later, another one of the pipeline. What a file begins with is therefore kept, and
where the library fails it is written again by way of WebHDFS: there a DataNode is the client, Hadoop's own, which
leaves dead nodes out of a pipeline, and one that does not answer is named to the NameNode (`excludedatanodes`).
"""

import http.client
import json
import logging
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

from yaqd.config import Configuration

_log: Final = logging.getLogger(__name__)
#: an error of a pipeline that was never complete comes before the library has taken so much: it queues two hundred
#: packets of 64 KB
_REPLAYED_MAX: Final = 16 << 20
#: times that one file is written again, and DataNodes that each of them tries: one that is alive may itself be given
#: dead ones to write to, and its client does not survive every such moment
_TRIES: Final = 4
_PORT: Final = 9870
_TIMEOUT_S: Final = 20.0
_ERROR_BYTES: Final = 2000


def web_addresses(authority: str, conf: Configuration) -> list[tuple[str, int]]:
    """Where the NameNode's HTTP server listens, or that of each NameNode of a name service."""
    key = "dfs.namenode.http-address"
    names = conf.get_list(f"dfs.ha.namenodes.{authority}")
    values = [conf.get(f"{key}.{authority}.{name}") for name in names] if names else [conf.get(key)]
    found = []
    for value in values:
        host, _, port = (value or "").rpartition(":")
        host = authority.rpartition(":")[0] or authority if host in ("", "0.0.0.0") else host
        found.append((host, int(port) if port.isdecimal() else _PORT))
    return found


class WebHdfsFile:
    """A file that a DataNode writes for us. Its methods raise OSError."""

    def __init__(self, namenodes: list[tuple[str, int]], path: str, options: Mapping[str, object]) -> None:
        """`options`: parameters of CREATE. Replaces what has the name."""
        excluded: list[str] = []
        for _ in range(_TRIES):
            location = _placed(namenodes, path, {**options, "excludedatanodes": ",".join(excluded)})
            parts = urlsplit(location)
            assert parts.hostname is not None
            self._connection = http.client.HTTPConnection(parts.hostname, parts.port or 80, timeout=_TIMEOUT_S)
            try:
                self._connection.connect()
            except OSError as error:
                _log.warning("HDFS: %s does not answer (%s), another DataNode is asked for", parts.netloc, error)
                excluded.append(_data_address(namenodes, parts.hostname, parts.port or 80))
                continue
            self._connection.putrequest("PUT", f"{parts.path}?{parts.query}", skip_accept_encoding=True)
            self._connection.putheader("Content-Type", "application/octet-stream")
            self._connection.putheader("Transfer-Encoding", "chunked")
            self._connection.endheaders()
            return
        raise ConnectionError(f"no DataNode of {', '.join(excluded)} answers")

    def write(self, data: bytes) -> None:
        if data:
            self._connection.send(b"%x\r\n%b\r\n" % (len(data), data))

    def close(self) -> None:
        """Returns when HDFS has it all."""
        with closing(self._connection):
            self._connection.send(b"0\r\n\r\n")
            _checked(self._connection, http.client.CREATED)


class ReplayedFile:
    """A file of the library's, or, where that fails with its beginning, another one with the same bytes."""

    def __init__(
        self, file: Any, instead: Callable[[], WebHdfsFile], is_final: Callable[[BaseException], bool]
    ) -> None:
        """`is_final`: of an error that another way to write would not avoid."""
        self._file = file
        self._instead = instead
        self._is_final = is_final
        self._tries_left = _TRIES
        #: None when it is too late to begin again
        self._begun: list[bytes] | None = []
        self._begun_bytes = 0

    def write(self, data: bytes | bytearray) -> None:
        if self._begun is not None:
            self._begun.append(bytes(data))
            self._begun_bytes += len(data)
        try:
            self._file.write(data)
        except (OSError, RuntimeError) as error:
            self._begin_again(error, lambda: None)
        if self._begun_bytes > _REPLAYED_MAX:
            self._begun = None

    def close(self) -> None:
        try:
            self._file.close()
        except (OSError, RuntimeError) as error:
            self._begin_again(error, lambda: self._file.close())

    def _begin_again(self, error: OSError | RuntimeError, finish: Callable[[], None]) -> None:
        """Until all was written and finished. Raises the last error where that cannot help, or does not."""
        while self._begun is not None and self._tries_left > 0 and not self._is_final(error):
            self._tries_left -= 1
            _log.warning("HDFS: a file is written again by way of WebHDFS: %s", error)
            try:
                self._file = self._instead()
                for data in self._begun:
                    self._file.write(data)
                finish()
            except OSError as another:
                error = another
            else:
                return
        raise error


def _placed(namenodes: list[tuple[str, int]], path: str, options: Mapping[str, object]) -> str:
    """The URL, at a DataNode, that the active NameNode sends the file's writer to."""
    query = urlencode({"op": "CREATE", **{name: value for name, value in options.items() if value != ""}})
    problem: OSError | None = None
    for address in namenodes:
        try:
            with closing(http.client.HTTPConnection(*address, timeout=_TIMEOUT_S)) as connection:
                connection.request("PUT", f"/webhdfs/v1{quote(path)}?{query}")
                location = _checked(connection, http.client.TEMPORARY_REDIRECT).getheader("Location")
                if location:
                    return location
        except OSError as error:
            problem = error
    raise problem or ConnectionError("the NameNode names no DataNode")


def _data_address(namenodes: list[tuple[str, int]], host: str, port: int) -> str:
    """Where the DataNode whose HTTP server has that address takes data, by which the NameNode knows it."""
    for address in namenodes:
        try:
            with closing(http.client.HTTPConnection(*address, timeout=_TIMEOUT_S)) as connection:
                connection.request("GET", "/jmx?qry=Hadoop:service=NameNode,name=NameNodeInfo")
                (info,) = json.loads(_checked(connection, http.client.OK).read())["beans"]
        except OSError:
            continue
        for name, node in json.loads(info["LiveNodes"]).items():
            info_host, _, info_port = node["infoAddr"].rpartition(":")
            if int(info_port) == port and host in (info_host, name.rpartition(":")[0]):
                return str(node["xferaddr"])
    return host


def _checked(connection: http.client.HTTPConnection, status: int) -> http.client.HTTPResponse:
    """The answer, if it is that one. Raises OSError."""
    try:
        response = connection.getresponse()
        if response.status == status:
            return response
        text = response.read(_ERROR_BYTES).decode("utf-8", "replace")
    except http.client.HTTPException as error:
        raise ConnectionError(f"answers no HTTP: {type(error).__name__}") from None
    raise ConnectionError(f"{response.status} {response.reason}: {text}")
