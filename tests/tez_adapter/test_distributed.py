"""Our own jobs through the proxy at their master's node: placed there, queued at the nodes, counted by everybody."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from pathlib import Path

import pytest

from tez_adapter.client.follow import SubmittedJob
from tez_adapter.client.submit import submit_command, submit_mapreduce
from yaqd.config import Configuration
from yaqd.ipc import BlockingRpcClient
from yaqd.model import ApplicationAttemptId, ApplicationId
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ApplicationClientProtocol as Client

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

SETTINGS = {
    "yarn.resourcemanager.opportunistic-container-allocation.enabled": "true",
    "yarn.nodemanager.distributed-scheduling.enabled": "true",
    "yarn.nodemanager.amrmproxy.address": "127.0.0.1:0",
    "yarn.nodemanager.opportunistic-containers-max-queue-length": "20",
    "yarn.nodemanager.resource.memory-mb": "1536",
    "yarn.nodemanager.resource.cpu-vcores": "6",
    "yarn.app.mapreduce.am.resource.mb": "512",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "1.0",
}
SPARE = {"mapreduce.job.num-opportunistic-maps-percent": "100"}
COUNT = """
from yaqd.mapreduce import Job
class Count(Job):
    def map(self, key, value):
        for word in value.split():
            yield word, 1
    def reduce(self, key, values):
        yield key, sum(values)
"""


@pytest.fixture(scope="module", params=["lengths", "waits"])
def distributed(
    request: pytest.FixtureRequest,
    running: Callable[..., AbstractContextManager[Configuration]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Configuration]:
    """Proxies that go by how many wait, or, with queues filled on purpose, by how long."""
    filled = {"yaq.queue.enabled": "true", "yaq.queue.default-estimate": "1s"} if request.param == "waits" else {}
    words = (word for key, value in (SETTINGS | filled).items() for word in ("-D", f"{key}={value}"))
    with running(tmp_path_factory.mktemp("distributed") / "c", 3, *words) as conf:
        yield conf.with_overrides(SPARE)


def _containers(conf: Configuration, application: ApplicationId) -> list[common.ContainerReport]:
    request = pb.GetContainersRequest(
        application_attempt_id=convert.attempt_id_pb(ApplicationAttemptId(application, 1))
    )
    with closing(BlockingRpcClient(*conf.get_address("yarn.resourcemanager.address"), user="test")) as client:
        return list(client.call(Client.getContainers, request).containers)


def _finish(job: SubmittedJob) -> str:
    try:
        return job.wait(timeout_s=90).state
    finally:
        job.close()


def test_maps_are_placed_by_the_proxy_and_reduces_by_the_scheduler(
    distributed: Configuration, write: Callable[[str, str], str], tmp_path: Path
) -> None:
    source = write("in.txt", "a b c a\n" * 2000)
    conf = distributed.with_overrides({"mapreduce.input.fileinputformat.split.maxsize": "2000"})
    job = submit_mapreduce(conf, write("count.py", COUNT), inputs=[source], output=str(tmp_path / "out"), reduces=1)
    assert _finish(job) == "SUCCEEDED"
    (part,) = (tmp_path / "out").glob("part-*")
    assert part.read_text() == "a\t4000\nb\t2000\nc\t2000\n"
    kinds = Counter((c.container_id.id < 0, c.executionType) for c in _containers(conf, job.application_id))
    assert kinds[True, common.OPPORTUNISTIC] >= 2 and kinds[False, common.GUARANTEED] >= 1
    assert set(kinds) == {(True, common.OPPORTUNISTIC), (False, common.GUARANTEED)}


def test_a_command_in_more_copies_than_there_is_room_for_runs_in_all_of_them(distributed: Configuration) -> None:
    job = submit_command(distributed, ["sleep", "0.5"], tasks=24)
    assert _finish(job) == "SUCCEEDED"
    master, *others = sorted(_containers(distributed, job.application_id), key=lambda c: -c.container_id.id)
    done = [c for c in others if c.container_exit_status == 0]
    assert master.executionType == common.GUARANTEED and len(done) == 24
    assert len({c.container_id.id for c in others}) == len(others)
    shares = Counter(convert.node_id(c.node_id) for c in done)
    assert len(shares) == 3 and min(shares.values()) >= 4, "no node was left aside"
