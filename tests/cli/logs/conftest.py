"""A node that speaks as a stock one does, and what the ResourceManager says of its application."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest

from tests.cli.cli_log_node import Node, Printed
from yaqd.cli.applications import follow_logs as following
from yaqd.cli.applications import logs as reading
from yaqd.cli.applications.logs import Choice, KnownApplication
from yaqd.cli.applications.node_logs import LoggedContainer
from yaqd.config import Configuration
from yaqd.model import ApplicationId, YarnApplicationState


@pytest.fixture
def node() -> Iterator[Node]:
    node = Node()
    yield node
    node.stop()


@pytest.fixture
def known(node: Node, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Says what the ResourceManager knows; several states come one after the other."""

    def tell(*rounds: tuple[bool, int, list[LoggedContainer]]) -> None:
        told = iter(rounds)
        last: list[KnownApplication] = []

        def find(conf: Configuration, application: ApplicationId, choice: Choice) -> KnownApplication:
            state = next(told, None)
            if state is not None:
                is_final, log_status, containers = state
                state_name = YarnApplicationState.FINISHED if is_final else YarnApplicationState.RUNNING
                report = SimpleNamespace(state=state_name, log_aggregation=log_status, user="alice")
                last[:] = [KnownApplication(application, report, "alice", containers)]  # type: ignore[arg-type]
            return last[0]

        monkeypatch.setattr(reading, "find_application", find)
        monkeypatch.setattr(following, "find_application", find)

    return tell


@pytest.fixture
def printed(capfd: pytest.CaptureFixture[str]) -> Printed:
    return lambda: capfd.readouterr().out
