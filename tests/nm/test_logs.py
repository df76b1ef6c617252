"""Log aggregation on a node: what is uploaded, when, under which names, and what happens when it cannot be."""

import asyncio
import os
import stat
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import pytest

from nm.daemon import NodeManager
from nm.logs.aggregation.records import LogRecord, LogRecords
from nm.logs.aggregation.upload import Upload
from tests.nm.nm_cluster import (
    BASH_ENVIRONMENT,
    USER,
    FakeResourceManager,
    Master,
    application,
    container_id,
    launch_context,
)
from yaqd.config import Configuration
from yaqd.model import ApplicationId
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.storage import get_filesystem
from yaqd.storage.tfile import AggregatedLogReader, StoredFile

StartNode = Callable[..., Awaitable[NodeManager]]

APP = application()
ONE, TWO, THREE = (container_id(number) for number in (1, 2, 3))
#: what the node writes itself
_OWN = ("directory.info", "launch_container.sh", "prelaunch.out", "prelaunch.err")


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return tmp_path / "remote"


@pytest.fixture
def settings(remote: Path) -> dict[str, str]:
    return {
        "yarn.log-aggregation-enable": "true",
        "yarn.nodemanager.remote-app-log-dir": f"file://{remote}",
        "yarn.nodemanager.log-container-debug-info.enabled": "false",
    }


def _folder(remote: Path, app: ApplicationId = APP) -> Path:
    return remote / USER / "bucket-logs-tfile" / f"{app.id % 10000:04d}" / str(app)


def _read(path: Path) -> tuple[AggregatedLogReader, dict[tuple[str, str], bytes]]:
    conf = Configuration.load(environ={})
    reader = AggregatedLogReader(StoredFile(get_filesystem(str(path), conf), str(path)))
    return reader, {
        (file.container, file.name): b"".join(pieces) for file, pieces in reader.files() if file.name not in _OWN
    }


def _uploaded(remote: Path) -> dict[tuple[str, str], bytes]:
    found: dict[tuple[str, str], bytes] = {}
    for path in sorted(_folder(remote).iterdir()):
        found |= _read(path)[1]
    return found


def _shell(command: str, acls: Mapping["common.ApplicationAccessType", str] = {}) -> common.ContainerLaunchContext:
    context = launch_context(command, environment=BASH_ENVIRONMENT)
    for kind, text in acls.items():
        context.application_ACLs.add(accessType=kind, acl=text)
    return context


def _end_application(rm: FakeResourceManager, app: ApplicationId = APP) -> None:
    rm.orders.append(lambda response: response.applications_to_cleanup.append(convert.application_id_pb(app)))


def _statuses(rm: FakeResourceManager, app: ApplicationId = APP) -> list[int]:
    """In the order in which heartbeats brought them."""
    return [
        report.log_aggregation_status
        for heartbeat in rm.heartbeats
        for report in heartbeat.log_aggregation_reports_for_apps
        if convert.application_id(report.application_id) == app
    ]


async def _final(rm: FakeResourceManager, app: ApplicationId = APP) -> int:
    ends = (common.LOG_SUCCEEDED, common.LOG_FAILED)
    return int(await rm.until(lambda: next((s for s in _statuses(rm, app) if s in ends), None)))


async def _eventually(condition: Callable[[], bool], timeout_s: float = 10.0) -> None:
    """For what only the disk shows."""
    async with asyncio.timeout(timeout_s):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_logs_are_uploaded_at_the_end_in_hadoops_layout_and_deleted_here(
    rm: FakeResourceManager, start_node: StartNode, settings: dict[str, str], remote: Path
) -> None:
    node = await start_node(settings)
    master = Master(rm, node)
    acls = {common.APPACCESS_VIEW_APP: "bob staff", common.APPACCESS_MODIFY_APP: " "}
    await master.run(ONE, _shell("echo hello 1><LOG_DIR>/stdout; printf 'x%.0s' {1..70000} > <LOG_DIR>/syslog", acls))
    await master.run(TWO, _shell("echo bad 1><LOG_DIR>/stderr; mkdir <LOG_DIR>/sub; exit 3"))
    await rm.end_of(ONE)
    await rm.end_of(TWO)
    assert not list(_folder(remote).iterdir()) if _folder(remote).exists() else True
    _end_application(rm)
    assert await _final(rm) == common.LOG_SUCCEEDED
    (file,) = _folder(remote).iterdir()
    assert file.name == str(node.node_id).replace(":", "_")
    reader, logs = _read(file)
    assert logs == {
        (str(ONE), "stdout"): b"hello\n",
        (str(ONE), "syslog"): b"x" * 70000,
        (str(TWO), "stderr"): b"bad\n",
    }
    assert (reader.owner, reader.acls) == (USER, {"VIEW_APP": "bob staff", "MODIFY_APP": " "})
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (remote, remote / USER, _folder(remote), file)]
    assert modes == [0o1777, 0o770, 0o770, 0o640]
    await _eventually(lambda: not (node.settings.log_dirs[0] / str(APP)).exists())
    assert _statuses(rm) == [common.LOG_RUNNING, common.LOG_SUCCEEDED]
    await master.client.close()


async def test_only_files_of_the_folder_are_uploaded_whatever_their_names(
    rm: FakeResourceManager, start_node: StartNode, settings: dict[str, str], remote: Path
) -> None:
    node = await start_node(settings)
    master = Master(rm, node)
    strange = "$(printf 'n\\377\\n')x"
    await master.run(
        ONE,
        _shell(f"cd <LOG_DIR>; ln -s /etc/passwd link; mkfifo pipe; mkdir sub; echo s > sub/file; echo n > {strange}"),
    )
    await rm.end_of(ONE)
    _end_application(rm)
    assert await _final(rm) == common.LOG_SUCCEEDED
    assert list(_uploaded(remote).values()) == [b"n\n"]
    await master.client.close()


async def test_the_nodes_own_copies_stay_for_who_wants_to_look_at_them(
    rm: FakeResourceManager, start_node: StartNode, settings: dict[str, str], remote: Path
) -> None:
    node = await start_node(settings | {"yarn.nodemanager.delete.debug-delay-sec": "1000"})
    master = Master(rm, node)
    await master.run(ONE, _shell("echo hello 1><LOG_DIR>/stdout"))
    await rm.end_of(ONE)
    _end_application(rm)
    assert await _final(rm) == common.LOG_SUCCEEDED
    await node.stop()
    assert _uploaded(remote) == {(str(ONE), "stdout"): b"hello\n"}
    assert (node.settings.log_dirs[0] / str(APP) / str(ONE) / "stdout").read_text() == "hello\n"
    await master.client.close()


async def test_without_aggregation_logs_stay(
    rm: FakeResourceManager, start_node: StartNode, settings: dict[str, str], remote: Path
) -> None:
    node = await start_node(settings | {"yarn.log-aggregation-enable": "false"})
    master = Master(rm, node)
    await master.run(ONE, _shell("echo hello 1><LOG_DIR>/stdout"))
    await rm.end_of(ONE)
    _end_application(rm)
    await rm.until(lambda: not node.runtime.applications)
    assert (node.settings.log_dirs[0] / str(APP) / str(ONE) / "stdout").read_text() == "hello\n"
    assert not remote.exists()  # noqa: ASYNC240
    await master.client.close()


async def test_the_applications_patterns_and_policy_choose(
    rm: FakeResourceManager, start_node: StartNode, settings: dict[str, str], remote: Path
) -> None:
    node = await start_node(settings)
    master = Master(rm, node)
    context = common.LogAggregationContext(
        include_pattern="std|sys",
        exclude_pattern="err$",
        log_aggregation_policy_class_name="org.apache.hadoop.yarn.x.FailedOrKilledContainerLogAggregationPolicy",
    )

    def write(code: int) -> common.ContainerLaunchContext:
        return _shell(f"cd <LOG_DIR>; echo a > stdout; echo b > stderr; echo c > syslog; echo d > other; exit {code}")

    for container, code in ((ONE, 0), (TWO, 1)):
        token = rm.container_token
        rm.container_token = _with_context(token, context)  # type: ignore[method-assign]
        await master.run(container, write(code))
        rm.container_token = token  # type: ignore[method-assign]
        await rm.end_of(container)
    _end_application(rm)
    assert await _final(rm) == common.LOG_SUCCEEDED
    assert set(_uploaded(remote)) == {(str(TWO), "stdout"), (str(TWO), "syslog")}
    await master.client.close()


def _with_context(
    mint: Callable[..., common.Token], context: common.LogAggregationContext
) -> Callable[..., common.Token]:
    from yaqd.proto import yarn_server_pb2 as server

    def minted(*args: object, **fields: object) -> common.Token:
        token = mint(*args, **fields)
        rm_secrets = mint.__self__.container_tokens  # type: ignore[attr-defined]
        identifier = server.ContainerTokenIdentifier.FromString(token.identifier)
        identifier.logAggregationContext.CopyFrom(context)
        return rm_secrets.mint(identifier).to_pb()

    return minted


@pytest.mark.slow
async def test_a_long_application_uploads_each_interval_and_each_file_once(
    rm: FakeResourceManager, start_node: StartNode, settings: dict[str, str], remote: Path
) -> None:
    prefix = "yarn.nodemanager.log-aggregation.roll-monitoring-interval-seconds"
    node = await start_node(settings | {prefix: "1", f"{prefix}.min": "0"})
    master = Master(rm, node)
    context = common.LogAggregationContext(rolled_logs_include_pattern="roll", rolled_logs_exclude_pattern="tmp")
    rm.container_token = _with_context(rm.container_token, context)  # type: ignore[method-assign]
    script = "cd <LOG_DIR>; echo 1 > roll.1; echo t > roll.tmp; echo o > stdout; while [ ! -e go ]; do sleep .05; done"
    await master.run(ONE, _shell(script + "; echo 2 > roll.2"))
    await rm.until(lambda: common.LOG_RUNNING in _statuses(rm))
    assert _uploaded(remote) == {(str(ONE), "roll.1"): b"1\n"}
    folder = node.settings.log_dirs[0] / str(APP) / str(ONE)
    await _eventually(lambda: not (folder / "roll.1").exists())  # however long the container runs on
    assert {"roll.tmp", "stdout"} <= {file.name for file in folder.iterdir()}
    (node.settings.log_dirs[0] / str(APP) / str(ONE) / "go").touch()
    await rm.end_of(ONE)
    _end_application(rm)
    assert await _final(rm) == common.LOG_SUCCEEDED
    files = sorted(_folder(remote).iterdir())
    assert len(files) >= 2
    assert all(file.name.startswith(f"{str(node.node_id).replace(':', '_')}_1") for file in files)
    names = [name for file in files for _, name in _read(file)[1]]
    assert sorted(names) == ["go", "roll.1", "roll.2", "roll.tmp", "stdout"]
    await master.client.close()


@pytest.mark.slow
async def test_an_application_that_ends_during_an_upload_uploads_nothing_twice(
    rm: FakeResourceManager,
    start_node: StartNode,
    settings: dict[str, str],
    remote: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prefix = "yarn.nodemanager.log-aggregation.roll-monitoring-interval-seconds"
    node = await start_node(settings | {prefix: "1", f"{prefix}.min": "0"})
    assert node.logs is not None
    has_begun, may_go_on = threading.Event(), threading.Event()
    upload = node.logs._uploaders.upload

    def slow(work: Upload) -> None:
        if work.files and not has_begun.is_set():
            has_begun.set()
            may_go_on.wait(20)
        upload(work)

    monkeypatch.setattr(node.logs._uploaders, "upload", slow)
    master = Master(rm, node)
    context = common.LogAggregationContext(rolled_logs_include_pattern="roll", rolled_logs_exclude_pattern="tmp")
    rm.container_token = _with_context(rm.container_token, context)  # type: ignore[method-assign]
    await master.run(ONE, _shell("cd <LOG_DIR>; echo 1 > roll.1; echo o > stdout; exec sleep 60"))
    await _eventually(has_begun.is_set)
    await master.stop(ONE)
    await rm.end_of(ONE)
    _end_application(rm)
    await _eventually(lambda: APP not in node.runtime.applications)
    may_go_on.set()
    assert await _final(rm) == common.LOG_SUCCEEDED
    names = [name for file in sorted(_folder(remote).iterdir()) for _, name in _read(file)[1]]
    assert sorted(names) == ["roll.1", "stdout"]
    await master.client.close()


@pytest.mark.slow
async def test_an_upload_that_fails_is_tried_again_and_holds_up_no_other_application(
    rm: FakeResourceManager, start_node: StartNode, settings: dict[str, str], remote: Path
) -> None:
    blocked = _folder(remote)
    blocked.parent.mkdir(parents=True)
    blocked.write_text("a file where a folder must be")
    node = await start_node(settings)
    for app in (1, 2):
        master = Master(rm, node, app)
        container = container_id(1, app)
        await master.run(container, _shell("echo hello 1><LOG_DIR>/stdout"))
        await rm.end_of(container)
        _end_application(rm, application(app))
        await master.client.close()
    assert await _final(rm, application(2)) == common.LOG_SUCCEEDED
    await rm.until(lambda: common.LOG_RUNNING_WITH_FAILURE in _statuses(rm))
    assert (node.settings.log_dirs[0] / str(APP) / str(ONE) / "stdout").exists()
    blocked.unlink()
    assert await _final(rm) == common.LOG_SUCCEEDED
    assert _uploaded(remote) == {(str(ONE), "stdout"): b"hello\n"}


async def test_an_upload_that_never_works_is_reported_and_the_logs_stay_for_the_next_start(
    rm: FakeResourceManager, start_node: StartNode, settings: dict[str, str], remote: Path, tmp_path: Path
) -> None:
    blocked = _folder(remote)
    blocked.parent.mkdir(parents=True)
    blocked.write_text("")
    node = await start_node(settings | {"yarn.log-aggregation-status.time-out.ms": "100"})
    master = Master(rm, node)
    await master.run(ONE, _shell("echo hello 1><LOG_DIR>/stdout"))
    await rm.end_of(ONE)
    _end_application(rm)
    assert await _final(rm) == common.LOG_FAILED
    assert (node.settings.log_dirs[0] / str(APP) / str(ONE) / "stdout").exists()
    await node.stop()
    blocked.unlink()
    rm.heartbeats.clear()
    await start_node(settings)
    assert await _final(rm) == common.LOG_SUCCEEDED
    assert _uploaded(remote) == {(str(ONE), "stdout"): b"hello\n"}
    (file,) = _folder(remote).iterdir()
    assert file.name == str(node.node_id).replace(":", "_")  # of the life that wrote them
    await master.client.close()


async def test_a_node_that_stops_uploads_first(
    rm: FakeResourceManager, start_node: StartNode, settings: dict[str, str], remote: Path
) -> None:
    node = await start_node(settings)
    master = Master(rm, node)
    await master.run(ONE, _shell("echo hello 1><LOG_DIR>/stdout; exec sleep 60"))
    stdout = node.settings.log_dirs[0] / str(APP) / str(ONE) / "stdout"
    await _eventually(lambda: stdout.exists() and stdout.read_text() == "hello\n")
    await node.stop()
    assert _uploaded(remote) == {(str(ONE), "stdout"): b"hello\n"}
    assert not list((node.settings.log_dirs[0] / ".aggregation").glob("*.json"))
    await master.client.close()


async def test_logs_of_a_killed_node_are_uploaded_by_the_next_one(
    rm: FakeResourceManager, start_node: StartNode, settings: dict[str, str], remote: Path, tmp_path: Path
) -> None:
    context = common.LogAggregationContext(exclude_pattern="secret")
    records = LogRecords([tmp_path / "logs"])
    records.save(LogRecord(APP, USER, "gone.example:4242", {"VIEW_APP": "bob"}, context))
    for container in (ONE, TWO):
        folder = tmp_path / "logs" / str(APP) / str(container)
        folder.mkdir(parents=True)
        (folder / "stdout").write_text(f"{container}\n")
        (folder / "secret").write_text("no")
    old = time.time() - 1_000_000
    os.utime(tmp_path / "logs" / str(APP), (old, old))  # older than the retention of logs that nobody uploads
    await start_node(settings)
    assert await _final(rm) == common.LOG_SUCCEEDED
    (file,) = _folder(remote).iterdir()
    assert file.name == "gone.example_4242"
    reader, logs = _read(file)
    assert logs == {(str(c), "stdout"): f"{c}\n".encode() for c in (ONE, TWO)}
    assert (reader.owner, reader.acls) == (USER, {"VIEW_APP": "bob"})
    await _eventually(lambda: not (tmp_path / "logs" / str(APP)).exists() and not records.load())


async def test_reports_are_told_again_until_answered_and_to_a_new_resource_manager(
    rm: FakeResourceManager, start_node: StartNode, settings: dict[str, str]
) -> None:
    from yaqd.proto import yarn_server_pb2 as server

    node = await start_node(settings)
    master = Master(rm, node)
    await master.run(ONE, _shell("echo hello 1><LOG_DIR>/stdout"))
    await rm.end_of(ONE)
    _end_application(rm)
    await _final(rm)

    def resync(response: server.NodeHeartbeatResponse) -> None:
        response.nodeAction = server.RESYNC

    rm.orders.append(resync)
    registration = (await rm.until(lambda: rm.registrations[1:]))[0]
    assert [r.log_aggregation_status for r in registration.log_aggregation_reports_for_apps] == [common.LOG_SUCCEEDED]
    await master.client.close()
