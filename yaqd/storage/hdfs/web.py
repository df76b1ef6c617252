"""Writing to HDFS by way of WebHDFS, where a DataNode is the client: Hadoop's own, which leaves dead nodes out of a
pipeline. The DataNode that does it is named by the NameNode, and one that does not answer is left out too
(`excludedatanodes`).

Of a name service (`dfs.ha.namenodes.*`) each NameNode is asked until one answers: those on standby refuse.
"""

import http.client
import json
import logging
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from typing import Final
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from yaqd.config import Configuration

_log: Final = logging.getLogger(__name__)
#: DataNodes that are asked to write one file, until one answers
_TRIES: Final = 4
_PORT: Final = 9870
_CONNECT_S: Final = 5.0
_ERROR_BYTES: Final = 4000
#: parameters of the NameNode's that each request to a DataNode must carry
_CARRIED: Final = ("user.name", "doas", "delegation", "namenoderpcaddress")


class WebHdfsRefused(OSError):
    """HDFS answered, with an exception of Java's."""

    def __init__(self, java_class: str, text: str) -> None:
        super().__init__(f"{java_class.rpartition('.')[2]}: {text}")
        self.java_class = java_class
        self.text = text


def web_addresses(authority: str, conf: Configuration) -> list[tuple[str, int]]:
    """Return where the NameNode's HTTP server listens, or that of each NameNode of a name service."""
    key = "dfs.namenode.http-address"
    names = conf.get_list(f"dfs.ha.namenodes.{authority}")
    if not names:
        return [_web_address(conf.get(key), authority.rpartition(":")[0] or authority)]
    rpc = (conf.get(f"dfs.namenode.rpc-address.{authority}.{name}") or "" for name in names)
    hosts = [address.rpartition(":")[0] for address in rpc]
    return [_web_address(conf.get(f"{key}.{authority}.{name}"), host) for name, host in zip(names, hosts, strict=True)]


def _web_address(value: str | None, rpc_host: str) -> tuple[str, int]:
    """Where no host is configured, or any, it is that of the RPC address."""
    host, _, port = (value or "").rpartition(":")
    return (rpc_host if host in ("", "0.0.0.0") else host, int(port) if port.isdecimal() else _PORT)


class WebHdfs:
    """WebHDFS of one file system, for one file: it remembers which DataNodes did not answer. Errors are OSErrors."""

    def __init__(self, namenodes: list[tuple[str, int]], user: str, patience_s: float) -> None:
        """`patience_s`: how long a DataNode may take nothing, and say nothing when all is sent."""
        self._namenodes = list(namenodes)
        self._user = user
        self._patience_s = patience_s
        self._excluded: list[str] = []

    def create(self, path: str, options: Mapping[str, object]) -> "WebHdfsFile":
        """Replace what has the name. Make no folder: one that was removed meanwhile does not come back."""
        sent = {"overwrite": "true", "createparent": "false", **options}
        return self._written(path, "PUT", {"op": "CREATE", **sent}, http.client.CREATED)

    def append(self, path: str) -> "WebHdfsFile":
        """Write more of a file that is closed."""
        return self._written(path, "POST", {"op": "APPEND"}, http.client.OK)

    def _written(self, path: str, method: str, parameters: Mapping[str, object], status: int) -> "WebHdfsFile":
        for _ in range(_TRIES):
            try:
                where = urlsplit(self._placed(path))
            except WebHdfsRefused:
                self._excluded.clear()  # no other is left: one that was busy may answer the next time
                raise
            carried = [(name, value) for name, value in parse_qsl(where.query) if name in _CARRIED]
            url = f"{where.path}?{urlencode([*parameters.items(), *carried])}"
            address = (where.hostname or "", where.port or 80)
            try:
                connection = _connection(address)
                connection.connect()
            except OSError as error:
                _log.warning("HDFS: %s does not answer (%s), another DataNode is asked for", where.netloc, error)
                self._leave_out(address)
            else:
                connection.sock.settimeout(self._patience_s)
                return WebHdfsFile(connection, method, url, status, partial(self._leave_out, address))
        raise ConnectionError(f"no DataNode of {', '.join(self._excluded)} answers")

    def _placed(self, path: str) -> str:
        """The URL of a DataNode that can write.

        It is asked for as if for a new file, for appending too: there the NameNode names the nodes alone that have the
        last block, while any node can be the client.
        """
        parameters = {"op": "CREATE", "user.name": self._user, "excludedatanodes": ",".join(self._excluded)}
        query = urlencode({name: value for name, value in parameters.items() if value})
        problem: OSError | None = None
        for address in list(self._namenodes):
            try:
                with closing(_connection(address)) as connection:
                    connection.request("PUT", f"/webhdfs/v1{quote(path)}?{query}")
                    location = _checked(connection, http.client.TEMPORARY_REDIRECT).getheader("Location")
                if location:
                    return location
            except OSError as error:
                problem = error
                # the others first, next time
                self._namenodes.append(self._namenodes.pop(self._namenodes.index(address)))
        raise problem or ConnectionError("the NameNode names no DataNode")

    def _leave_out(self, address: tuple[str, int]) -> None:
        self._excluded.append(self._data_address(*address))

    def _data_address(self, host: str, port: int) -> str:
        """Where the DataNode whose HTTP server has that address takes data, by which the NameNode knows it."""
        for address in self._namenodes:
            try:
                with closing(_connection(address)) as connection:
                    connection.request("GET", "/jmx?qry=Hadoop:service=NameNode,name=NameNodeInfo")
                    (info,) = json.loads(_checked(connection, http.client.OK).read())["beans"]
                for name, node in json.loads(info["LiveNodes"]).items():
                    info_host, _, info_port = node["infoAddr"].rpartition(":")
                    if int(info_port) == port and host in (info_host, name.rpartition(":")[0]):
                        return str(node["xferaddr"])
            except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError, AttributeError):
                continue
        return host


class WebHdfsFile:
    """A file that a DataNode writes for us. Its methods raise OSError."""

    def __init__(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        url: str,
        status: int,
        leave_out: Callable[[], None],
    ) -> None:
        """`status`: of the answer, when all is written. `leave_out` is called when the DataNode does not go on."""
        self._connection = connection
        self._status = status
        self._leave_out = leave_out
        connection.putrequest(method, url, skip_accept_encoding=True)
        connection.putheader("Content-Type", "application/octet-stream")
        connection.putheader("Transfer-Encoding", "chunked")
        connection.endheaders()

    def write(self, data: bytes) -> None:
        if data:
            self._send(b"%x\r\n%b\r\n" % (len(data), data))

    def close(self) -> None:
        """Return when HDFS has it all."""
        with closing(self._connection):
            self._send(b"0\r\n\r\n")
            self._answer()

    def _send(self, data: bytes) -> None:
        try:
            self._connection.send(data)
        except TimeoutError:
            self._leave_out()
            raise
        except OSError:
            self._answer()  # it says why, unless it is gone
            raise

    def _answer(self) -> None:
        try:
            _checked(self._connection, self._status)
        except TimeoutError:
            self._leave_out()
            raise


def _connection(address: tuple[str, int]) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(*address, timeout=_CONNECT_S)


def _checked(connection: http.client.HTTPConnection, status: int) -> http.client.HTTPResponse:
    """The answer, if it is that one. Raises OSError."""
    try:
        response = connection.getresponse()
        if response.status == status:
            return response
        text = response.read(_ERROR_BYTES).decode("utf-8", "replace")
    except http.client.HTTPException as error:
        raise ConnectionError(f"answers no HTTP: {type(error).__name__}") from None
    try:
        refused = json.loads(text)["RemoteException"]
        raise WebHdfsRefused(str(refused["javaClassName"]), str(refused["message"]))
    except (ValueError, KeyError, TypeError):
        raise ConnectionError(f"{response.status} {response.reason}: {text}") from None
