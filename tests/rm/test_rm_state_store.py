"""What outlives the ResourceManager."""

import asyncio
import os
import sqlite3
from pathlib import Path

import pytest
from rm_harness import cluster

from rm.application import Application
from rm.state_store import StateStore, StateStoreError
from yaqd.ipc.errors import RemoteIOError
from yaqd.model import ApplicationId
from yaqd.proto import yarn_common_pb2 as common


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
