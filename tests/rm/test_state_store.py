"""What outlives the ResourceManager."""

import asyncio
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from rm.applications.records import Application
from rm.store.state_store import StateStore, StateStoreError
from tests.rm.rm_harness import ManualClock, cluster
from yaqd.ipc.errors import RemoteIOError
from yaqd.model import ApplicationId
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ApplicationClientProtocol as Client


def application(number: int) -> Application:
    return Application(ApplicationId(1, number), common.ApplicationSubmissionContext(application_name="x"), "alice", 5)


async def test_restart_lists_what_ended_and_tries_the_rest_again(tmp_path: Path) -> None:
    store = tmp_path / "deep" / "rm.sqlite"
    async with cluster(store=store) as rm:
        node = await rm.node()
        done, master = await rm.running(node)
        await master.finish()
        open_app, _ = await rm.running(node, application_name="open")
        first_container = next(iter(node.started))
        assert first_container.epoch == 0
    async with cluster(store=store) as rm:
        report = await rm.report(done)
        assert report.yarn_application_state == common.FINISHED
        assert report.diagnostics == "all done" and report.finishTime > 0
        assert report.final_application_status == common.APP_SUCCEEDED
        assert (await rm.report(open_app)).yarn_application_state == common.ACCEPTED
        node = await rm.node()
        again = await rm.launched(open_app, node, attempt=2)
        assert next(iter(node.started)).epoch == 1
        assert str(next(iter(node.started))).startswith("container_e01_")
        await again.register()
        report = await rm.report(open_app)
        assert (report.user, report.name) == ("alice", "open")
        assert report.currentApplicationAttemptId.attemptId == 2
        await again.finish()
    async with cluster(store=store) as rm:
        assert (await rm.report(open_app)).yarn_application_state == common.FINISHED


@pytest.mark.parametrize("is_master_gone", [True, False])
async def test_what_ended_applications_used_is_known_after_a_restart(tmp_path: Path, is_master_gone: bool) -> None:
    store, clock = tmp_path / "rm.sqlite", ManualClock()
    async with cluster(store=store, clock=clock) as rm:
        node = await rm.node()
        app_id, master = await rm.running(node)
        clock.seconds += 60
        await master.finish()
        if is_master_gone:
            clock.seconds += 5
            node.end(next(iter(node.running)))
            await node.beat()
        before = (await rm.report(app_id)).app_resource_Usage
        assert before.memory_seconds == 1024 * (65 if is_master_gone else 60) and before.vcore_seconds >= 60
        killed = await rm.submit()
        await rm.client.call(
            Client.forceKillApplication, pb.KillApplicationRequest(application_id=convert.application_id_pb(killed))
        )
    with closing(sqlite3.connect(store)) as database:
        rows = database.execute("SELECT id, totals FROM application_use").fetchall()
        assert [number for number, _ in rows] == [app_id.id, killed.id]
        broken = [
            '{"memory_mb_ms":-1,"vcore_ms":3000,"further_ms":{"a":1.5,"b":7000}}',
            "[]",
            "{",
            "7",
            '{"vcore_ms":{}}',
        ]
        for number, text in enumerate(broken, 10):
            database.execute(
                "INSERT INTO application SELECT cluster_timestamp, ?, user, context, submitted_ms, attempts, state,"
                " final_status, diagnostics, tracking_url, launched_ms, finished_ms FROM application WHERE id = 1",
                (number,),
            )
            database.execute("INSERT INTO application_use VALUES (?, ?, ?)", (app_id.cluster_timestamp, number, text))
        database.commit()
    async with cluster(store=store) as rm:
        after = (await rm.report(app_id)).app_resource_Usage
        for name in ("memory_seconds", "vcore_seconds", "application_resource_usage_map"):
            assert getattr(after, name) == getattr(before, name)
        apps = {app.id.id: app for app in rm.manager.cluster.applications.values()}
        assert (apps[10].memory_mb_ms, apps[10].vcore_seconds, apps[10].further_ms) == (0, 3, {"b": 7000})
        assert all(apps[number].vcore_ms == 0 for number in range(11, 15))


async def test_writes_that_gather_share_a_commit(tmp_path: Path) -> None:
    store = StateStore(tmp_path / "rm.sqlite")
    store.load()
    futures = []
    store._loop = asyncio.get_running_loop()
    for number in range(200):
        futures.append(store.put_submission(application(number)))
    store.start(asyncio.get_running_loop())
    await asyncio.gather(*futures)
    assert (store.writes, store.commits) == (200, 1)
    store.close()
    reader = StateStore(tmp_path / "rm.sqlite")
    state = reader.load()
    assert state.epoch == 1
    assert [a.id.id for a in state.applications] == list(range(200))
    reader.close()


async def test_submission_that_cannot_be_stored_is_refused(tmp_path: Path) -> None:
    store = tmp_path / "rm.sqlite"
    async with cluster(store=store) as rm:
        other = sqlite3.connect(store, isolation_level=None)
        other.execute("DROP TABLE application")
        with pytest.raises(RemoteIOError, match="was not accepted"):
            await rm.submit()
        assert not rm.manager.cluster.applications
        other.close()


def test_store_that_cannot_be_opened_says_why_and_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(StateStoreError, match=r"yaq\.rm\.state-store\.path"):
        StateStore(tmp_path / "file" / "rm.sqlite")
    garbage = tmp_path / "garbage.sqlite"
    garbage.write_bytes(b"this is not a database at all" * 100)
    with pytest.raises(StateStoreError, match="not a database"):
        StateStore(garbage)
    newer = tmp_path / "newer.sqlite"
    store = StateStore(newer)
    store.load()
    store._database.execute("UPDATE meta SET value = 99 WHERE name = 'schema'")
    store.close()
    with pytest.raises(StateStoreError, match="version 99"):
        StateStore(newer)


def test_a_store_has_one_resourcemanager_whatever_name_it_is_opened_by(tmp_path: Path) -> None:
    first = StateStore(tmp_path / "rm.sqlite")
    (tmp_path / "link").symlink_to(tmp_path)
    for path in (tmp_path / "rm.sqlite", tmp_path / "link" / "rm.sqlite"):
        with pytest.raises(StateStoreError) as refused:
            StateStore(path)
        assert str(refused.value) == (
            f"another ResourceManager (pid {os.getpid()}) runs on rm.sqlite in {tmp_path}: stop it first, or set "
            "yaq.rm.state-store.path to another file"
        )
    first.close()
    StateStore(tmp_path / "rm.sqlite").close()


def test_a_refused_store_is_not_kept_locked(tmp_path: Path) -> None:
    path = tmp_path / "rm.sqlite"
    path.write_bytes(b"this is not a database at all" * 100)
    with pytest.raises(StateStoreError, match="not a database"):
        StateStore(path)
    path.unlink()
    StateStore(path).close()
