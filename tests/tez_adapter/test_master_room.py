"""A full cluster, and a master that comes to it: how many of the tasks that wait at its node start before it."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.tez_adapter.tez_jobs import until
from tez_adapter.client.follow import SubmittedJob
from tez_adapter.client.rm_client import ContainerReport, RmClient
from tez_adapter.client.submit import submit_command
from tez_adapter.history import read_history
from yaqd.config import Configuration
from yaqd.proto import yarn_common_pb2 as common

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

SLOTS, BOUND = 3, 6
#: room for two masters less than one slot: where one task ends there is room for a master, and not before
SETTINGS = {
    "yarn.nodemanager.resource.memory-mb": str(512 * (SLOTS + 1)),
    "yarn.app.mapreduce.am.resource.mb": "512",
    "mapreduce.map.memory.mb": "512",
    "yarn.scheduler.minimum-allocation-mb": "512",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "1.0",
    "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": "500",
    "yaq.queue.enabled": "true",
    "yaq.queue.bound": str(BOUND),
    "yaq.queue.default-estimate": "1s",
}


def containers_of(rm: RmClient, job: SubmittedJob) -> list[ContainerReport]:
    attempt = job.report().attempt
    return list(rm.containers(attempt)) if attempt is not None else []


def test_a_master_goes_before_the_whole_queue_of_its_node(
    running: Callable[..., AbstractContextManager[Configuration]], tmp_path: Path
) -> None:
    words = [word for key, value in SETTINGS.items() for word in ("-D", f"{key}={value}")]
    began = tmp_path / "began"
    with running(tmp_path / "c", 1, *words) as conf:
        large = submit_command(conf, ["sh", "-c", f"echo $CONTAINER_ID >> {began}; sleep 2"], tasks=40)
        until(lambda: began.exists() and len(began.read_text().split()) >= 2 * SLOTS)
        small = submit_command(conf, ["true"], tasks=1)
        before = len(began.read_text().split())
        with RmClient(conf) as rm:
            until(lambda: any(c.state == common.C_RUNNING for c in containers_of(rm, small)))
        passed = len(began.read_text().split()) - before
        assert small.wait(timeout_s=60).state == "SUCCEEDED"
        small.close()
        large.kill()
        large.close()
    assert passed <= SLOTS, f"{passed} tasks started before the master, of {BOUND} that waited"
    assert read_history(conf, small.application_id).attempts
