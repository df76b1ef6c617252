"""Clients that ask the daemons beside the fuzzer, and must be answered as if it were not there."""

import http.client
import threading
import time
from dataclasses import dataclass, field

from tests.hostile.fuzz_cluster import FuzzCluster
from yaqd.ipc import RpcError
from yaqd.proto import yarn_service_pb2 as service
from yaqd.proto.protocols import ApplicationClientProtocol


@dataclass(slots=True)
class GoodClients:
    """Ask the daemons now and then in a thread of their own, as anybody would, and note how long they take."""

    cluster: FuzzCluster
    waits_s: list[tuple[float, str]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    _stopped: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> "GoodClients":
        self._thread = threading.Thread(target=self._run, name="good clients")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        assert self._thread is not None
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(0.1):
            for name, ask in (
                ("client", self._ask),
                ("rm-web", lambda: self._get("rm", "cluster")),
                ("nodemanager-1", lambda: self._get("nm", "node")),
                ("nodemanager-2", lambda: self._get("nm", "node", 2)),
            ):
                began = time.monotonic()
                try:
                    ask()
                except (OSError, RpcError, http.client.HTTPException) as error:
                    self.failures.append(f"{name}: {error}")
                self.waits_s.append((time.monotonic() - began, name))

    def _ask(self) -> None:
        with self.cluster.client("yarn.resourcemanager.address") as client:
            client.call(ApplicationClientProtocol.getClusterMetrics, service.GetClusterMetricsRequest())

    def _get(self, daemon: str, scope: str, number: int = 1) -> None:
        self.cluster.browse(self.cluster.web(daemon, number), ("info",), f"/ws/v1/{scope}/")
