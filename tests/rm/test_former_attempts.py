"""Attempts of before a restart are listed after it, also the one that ended with its ResourceManager."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.rm.rm_harness import Harness, ManualClock, cluster
from yaqd.ipc.errors import ApplicationAttemptNotFound
from yaqd.model import ApplicationAttemptId, ApplicationId
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ApplicationClientProtocol as Client


async def attempts_of(rm: Harness, app_id: ApplicationId) -> list[common.ApplicationAttemptReport]:
    request = pb.GetApplicationAttemptsRequest(application_id=convert.application_id_pb(app_id))
    found = list((await rm.client.call(Client.getApplicationAttempts, request)).application_attempts)
    for attempt in found:  # the ResourceManager's port is another one each time; where no master is, is nowhere
        for name in ("tracking_url", "original_tracking_url", "host", "rpc_port"):
            attempt.ClearField(name)
    return found


async def containers_of(rm: Harness, attempt_id: ApplicationAttemptId) -> list[common.ContainerReport]:
    request = pb.GetContainersRequest(application_attempt_id=convert.attempt_id_pb(attempt_id))
    return list((await rm.client.call(Client.getContainers, request)).containers)


async def test_every_attempt_is_listed_after_a_restart(tmp_path: Path) -> None:
    store, clock = tmp_path / "rm.sqlite", ManualClock()
    async with cluster(store=store, clock=clock) as rm:
        node = await rm.node()
        app_id, _ = await rm.running(node)
        first = next(iter(node.running))
        clock.seconds += 3
        node.end(first, exit_status=7)
        await node.beat()
        await rm.launched(app_id, node, attempt=2)
        done, master = await rm.running(node)
        await master.finish()
        node.end(next(c for c in node.running if c.application_id == done))
        await node.beat()
        await rm.until(lambda: rm.manager.cluster.applications[done].is_over)
        (before, _) = await attempts_of(rm, app_id)
        (before_done,) = await attempts_of(rm, done)
        node_id = str(node.id)
    clock.seconds += 60
    async with cluster(store=store, clock=clock) as rm:
        failed, lost, present = await attempts_of(rm, app_id)
        assert failed == before
        assert "exitCode: 7" in failed.diagnostics and failed.finishTime - failed.startTime == 3000
        assert lost.yarn_application_attempt_state == common.APP_ATTEMPT_FAILED
        assert lost.diagnostics == "it ended with the ResourceManager that knew of it"
        assert lost.finishTime - lost.startTime == 60_000
        assert present.yarn_application_attempt_state == common.APP_ATTEMPT_SCHEDULED
        (container,) = await containers_of(rm, ApplicationAttemptId(app_id, 1))
        assert convert.container_id(container.container_id) == first and container.container_exit_status == 7
        assert str(convert.node_id(container.node_id)) == node_id
        (again,) = await attempts_of(rm, done)
        assert again == before_done and again.yarn_application_attempt_state == common.APP_ATTEMPT_FINISHED
        node = await rm.node()
        await (await rm.launched(app_id, node, attempt=3)).register()
    clock.seconds += 60
    async with cluster(store=store, clock=clock) as rm:
        assert (await attempts_of(rm, app_id))[:2] == [failed, lost]
        assert [a.application_attempt_id.attemptId for a in await attempts_of(rm, app_id)] == [1, 2, 3, 4]


@pytest.mark.parametrize("record", ["{", "7", "{}", '{"started":1,"state":"ODD","finished":2,"text":""}'])
async def test_a_record_that_makes_no_sense_is_no_attempt(tmp_path: Path, record: str) -> None:
    store = tmp_path / "rm.sqlite"
    async with cluster(store=store) as rm:
        node = await rm.node()
        app_id, _ = await rm.running(node)
    with closing(sqlite3.connect(store)) as database:
        assert [json.loads(text)["started"] > 0 for (text,) in database.execute("SELECT record FROM attempt")] == [True]
        database.execute("UPDATE attempt SET record = ?", (record,))
        database.commit()
    async with cluster(store=store) as rm:
        assert [a.application_attempt_id.attemptId for a in await attempts_of(rm, app_id)] == [2]
        with pytest.raises(ApplicationAttemptNotFound):
            await containers_of(rm, ApplicationAttemptId(app_id, 1))
