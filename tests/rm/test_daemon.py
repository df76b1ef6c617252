"""The daemon as a process: its ready line, its end, and the one line with which it refuses to start."""

import re
import signal
import socket
import urllib.request
from pathlib import Path

import pytest

from tests.rm.rm_process import start


@pytest.mark.slow
def test_ready_line_then_clean_stop_on_sigterm(tmp_path: Path) -> None:
    process = start(**{"yaq.rm.state-store.path": str(tmp_path / "rm.sqlite")})
    assert process.stdout is not None
    line = process.stdout.readline()
    address = r"127\.0\.0\.1:\d+"
    pattern = (
        rf"ResourceManager ready client={address} scheduler={address} tracker={address} admin={address} web={address}\n"
    )
    assert re.fullmatch(pattern, line)
    with urllib.request.urlopen(f"http://{line.split('web=')[1].strip()}/ws/v1/cluster/info", timeout=10) as answer:
        assert b'"state": "STARTED"' in answer.read()
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=5) == 0
    process.communicate()


@pytest.mark.slow
@pytest.mark.parametrize("key", ["yarn.resourcemanager.address", "yarn.resourcemanager.webapp.address"])
def test_taken_port_is_one_clear_line(key: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = start(**{key: f"127.0.0.1:{port}"})
        _, stderr = process.communicate(timeout=20)
    assert process.returncode == 2
    assert key in stderr and str(port) in stderr and "Traceback" not in stderr
    assert len([line for line in stderr.splitlines() if line.startswith("ResourceManager:")]) == 1


@pytest.mark.slow
def test_bad_queues_are_one_clear_line() -> None:
    process = start(**{"yarn.scheduler.capacity.root.default.capacity": "99"})
    _, stderr = process.communicate(timeout=20)
    assert process.returncode == 2
    assert "add up to 99" in stderr and "Traceback" not in stderr


@pytest.mark.slow
def test_a_second_one_on_the_same_store_is_refused_until_the_first_is_gone(tmp_path: Path) -> None:
    settings = {"yaq.rm.state-store.path": str(tmp_path / "rm.sqlite")}
    first = start(**settings)
    assert first.stdout is not None
    assert first.stdout.readline().startswith("ResourceManager ready")
    second = start(**settings)
    _, stderr = second.communicate(timeout=20)
    assert second.returncode == 2
    said = f"ResourceManager: another ResourceManager (pid {first.pid}) runs on rm.sqlite in {tmp_path}: stop it first"
    assert said in stderr and "Traceback" not in stderr
    first.kill()
    first.communicate()
    third = start(**settings)
    assert third.stdout is not None
    assert third.stdout.readline().startswith("ResourceManager ready")
    third.terminate()
    third.communicate()
