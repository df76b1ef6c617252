"""WebHDFS while a NameNode goes away in the middle of its answers."""

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, suppress

import pytest

from yaqd.storage.hdfs.web import WebHdfs


def _closed_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        return int(server.getsockname()[1])


def _beans(nodes: str) -> bytes:
    body = b'{"beans": [{"LiveNodes": ' + nodes.encode() + b"}]}"
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body


@pytest.fixture
def answers() -> dict[bytes, bytes]:
    """What is answered to the request that begins with it."""
    where = f"http://127.0.0.1:{_closed_port()}/webhdfs/v1/f?namenoderpcaddress=n"
    return {b"PUT": f"HTTP/1.1 307 x\r\nLocation: {where}\r\nContent-Length: 0\r\n\r\n".encode()}


@pytest.fixture
def namenode(answers: dict[bytes, bytes]) -> Iterator[int]:
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                client = server.accept()[0]
                with client:
                    request = client.recv(65536)
                    client.sendall(next(answer for start, answer in answers.items() if request.startswith(start)))

    thread = threading.Thread(target=serve)
    thread.start()
    yield server.getsockname()[1]
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    thread.join()


@pytest.mark.parametrize(
    "list_of_nodes",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n{",
        b"no status at all\r\n\r\n",
        _beans('"{\\"a:1\\": {}}"'),
        _beans('"[]"'),
        _beans("7"),
    ],
    ids=["broken off", "no HTTP", "without addresses", "a list", "a number"],
)
def test_a_dead_node_that_the_namenode_does_not_name_is_a_plain_error(
    namenode: int, answers: dict[bytes, bytes], list_of_nodes: bytes
) -> None:
    answers[b"GET"] = list_of_nodes
    with pytest.raises(ConnectionError, match="no DataNode of"):
        WebHdfs([("127.0.0.1", namenode)], "alice", 1.0).create("/f", {})


def test_a_namenode_that_speaks_something_else_is_a_plain_error(namenode: int, answers: dict[bytes, bytes]) -> None:
    answers[b"PUT"] = b"no status at all\r\n\r\n"
    with pytest.raises(ConnectionError):
        WebHdfs([("127.0.0.1", namenode)], "alice", 1.0).create("/f", {})
