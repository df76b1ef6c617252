"""A file system that takes connections and never answers: clients of a job that has ended do not wait for it."""

import asyncio
import logging
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import pytest

from tez_adapter.background import in_background
from tez_adapter.client.follow import SubmittedJob
from tez_adapter.client.rm_client import RmClient, _application
from yaqd.config import Configuration
from yaqd.ipc import RpcServer
from yaqd.model import ApplicationId, FinalApplicationStatus, YarnApplicationState
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common

APPLICATION = ApplicationId(1_700_000_000_000, 1)


@pytest.fixture
def silent() -> Iterator[Configuration]:
    """HDFS is a port that nobody answers at."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(16)
        uri = f"hdfs://127.0.0.1:{listening.getsockname()[1]}"
        yield Configuration.load(environ={}, overrides={"fs.defaultFS": uri})


class KilledJob:
    """What a ResourceManager says of a job of ours that was killed."""

    user = "alice"

    def report(self, application_id: ApplicationId) -> Any:
        message = common.ApplicationReport(user=self.user, diagnostics="killed by alice")
        message.applicationId.CopyFrom(convert.application_id_pb(application_id))
        report = _application(message)
        return replace(report, state=YarnApplicationState.KILLED, final_status=FinalApplicationStatus.KILLED)

    def close(self) -> None:
        pass


@pytest.mark.slow
def test_neither_its_kill_nor_its_result_waits_for_files(
    silent: Configuration, caplog: pytest.LogCaptureFixture
) -> None:
    job = SubmittedJob(silent, APPLICATION, cast(RmClient, KilledJob()))
    started = time.monotonic()
    with caplog.at_level(logging.WARNING):
        job.kill()
    assert f"`yaq app kill {APPLICATION}` removes them" in caplog.text
    result = job.result()
    assert (result.state, result.exit_code, result.diagnostics) == ("KILLED", 1, "killed by alice")
    assert time.monotonic() - started < 15, "two seconds each, on a busy machine"
    job.close()


def test_what_the_work_comes_to_and_what_it_raises() -> None:
    assert in_background(lambda: 6 * 7).result(20) == 42
    with pytest.raises(ZeroDivisionError):
        in_background(lambda: 1 / 0).result(20)
    assert not in_background(lambda: None).cancel()


#: asks a NameNode over and over, in the way that the rest of the program does, and ends meanwhile
BUSY = """
import sys, time
from hdfs_native import Client
from tez_adapter.background import in_background, leave

client = Client(f"hdfs://127.0.0.1:{sys.argv[1]}")

def ask():
    while True:
        try:
            client.get_file_info("/")
        except RuntimeError:
            begun.append(True)

begun = []
for _ in range(6):
    in_background(ask)
while not begun:
    time.sleep(0.01)
print("told", end="")
leave(7)
"""


async def test_a_process_whose_background_work_goes_on_ends_as_it_says() -> None:
    namenode = RpcServer(name="NameNode", host="127.0.0.1")
    await namenode.start()
    try:
        command = [sys.executable, "-c", BUSY, str(namenode.port)]
        ended = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=50)
    finally:
        await namenode.stop()
    assert (ended.returncode, ended.stdout, ended.stderr) == (7, "told", "")
