"""A shuffle service on loopback."""

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tez_data.tez_shuffle_service import Service


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(tmp_path / "node")

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            service.answer(self)

        def log_message(self, *_: object) -> None:
            pass

    class Server(http.server.ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """The peer hung up, as some tests want it to."""

    with Server(("127.0.0.1", 0), Handler) as server:
        service.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield service
        server.shutdown()
        thread.join()
