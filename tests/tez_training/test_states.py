"""The state of a step, once for each node."""

import hashlib
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tez_adapter.training.states import NodeStates

Pull = Callable[[str], bytes | None]


def test_workers_of_a_node_fetch_a_state_once(tmp_path: Path) -> None:
    states = {hashlib.sha256(data).hexdigest(): data for data in (bytes([i]) * 100_000 for i in range(5))}
    pulled: list[str] = []

    def pull(version: str) -> bytes | None:
        pulled.append(version)
        return states.get(version)

    for version, data in states.items():
        found: list[bytes | None] = []
        workers = [threading.Thread(target=_get, args=(tmp_path, pull, version, found)) for _ in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert found == [data] * 8
    assert pulled == list(states)
    assert len(list(tmp_path.glob("training-state-*"))) == 1


def _get(folder: Path, pull: Pull, version: str, found: list[bytes | None]) -> None:
    found.append(NodeStates(folder, pull).get(version))


def test_a_state_that_nobody_has_any_more_leaves_nothing(tmp_path: Path) -> None:
    assert NodeStates(tmp_path, lambda version: None).get("0" * 64) is None
    with pytest.raises(ValueError):
        NodeStates(tmp_path, lambda version: b"another").get("0" * 64)
    assert not list(tmp_path.glob("*training-state-*"))
