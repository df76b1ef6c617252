"""The job manager's smaller parts: what it tells the ResourceManager, what it writes down, what it hands to nodes."""

import json
import os
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riffle_merger.format.columns import Columns
from tests.tez_adapter.tez_driver import Driver, mapreduce
from tez_adapter.client.staging import Staging, SubmitError, alias_of
from tez_adapter.core import events as ev
from tez_adapter.core.dag import AttemptId
from tez_adapter.core.demand import Ask
from tez_adapter.history import NoHistory, read_history, write_history
from tez_adapter.jobspec import BadJobSpec, JobKind, JobResource, JobSpec, Streaming, attempt_name
from tez_adapter.kinds.mapreduce import MapReduceKind
from tez_adapter.master.launch import command_context, python_context, url
from tez_adapter.master.record import JobRecord
from tez_adapter.master.rm_link import AskTable
from tez_adapter.tasks.raw import raw_block
from yaqd.config import Configuration
from yaqd.mapreduce.counters import JOB_GROUP, JobCounter
from yaqd.mapreduce.serde import encode_key
from yaqd.model import ApplicationId, Resource

SMALL = Resource(1024, 1)
APP = ApplicationId(1700000000000, 7)


def spec(**changes: object) -> JobSpec:
    fields: dict[str, object] = {
        "job_id": "job_1700000000000_0007",
        "name": "count",
        "user": "alice",
        "kind": JobKind.MAPREDUCE,
        "conf": {"a": "b"},
        "staging": "file:///tmp/x",
        "script": "count.py",
        "class_name": "Count",
        "output": "file:///out",
        "reduces": 2,
    }
    return JobSpec(**{**fields, **changes})  # type: ignore[arg-type]


def conf(tmp_path: Path, **more: str) -> Configuration:
    return Configuration.load(environ={}, overrides={"yarn.app.mapreduce.am.staging-dir": str(tmp_path), **more})


# ---- asks


def ask(name: str, count: int, priority: int = 10) -> Ask:
    return Ask(priority, name, count, SMALL)


def test_only_what_changed_is_sent_and_what_is_gone_is_cancelled() -> None:
    table = AskTable()
    assert table.changes([ask("h1", 1), ask("*", 2)]) == [ask("h1", 1), ask("*", 2)]
    assert table.changes([ask("h1", 1), ask("*", 2)]) == []
    assert table.changes([ask("*", 1)]) == [ask("h1", 0), ask("*", 1)]
    assert table.changes([]) == [ask("*", 0)]
    assert table.changes([]) == []


def test_after_an_allocation_the_rows_of_its_priority_are_told_again() -> None:
    table = AskTable()
    table.changes([ask("*", 2), ask("*", 5, 20)])
    # the scheduler lowered `*` to 1; the container was released, and 2 are wanted still
    table.allocated(10)
    assert table.changes([ask("*", 2), ask("*", 5, 20)]) == [ask("*", 2)]


def test_the_two_kinds_of_containers_are_rows_of_their_own() -> None:
    table = AskTable()
    spare = Ask(10, "*", 3, SMALL, opportunistic=True)
    assert table.changes([spare, ask("*", 3)]) == [spare, ask("*", 3)]
    assert table.changes([ask("*", 3)]) == [replace(spare, count=0)]


def test_a_new_resource_manager_is_told_everything() -> None:
    table = AskTable()
    table.changes([ask("*", 2)])
    table.forget()
    assert table.changes([ask("*", 2)]) == [ask("*", 2)]


# ---- the job's file


@pytest.mark.parametrize(
    "original",
    [
        spec(),
        spec(kind=JobKind.STREAMING, streaming=Streaming("cat", "wc"), environment={"X": "ü"}),
        spec(resources=(JobResource("a", "file:///a", 3, 5),), py_files=("lib.zip",), boundaries=("00ff",)),
        spec(kind=JobKind.COMMAND, command="exec true", tasks=3),
    ],
)
def test_a_job_survives_its_file(original: JobSpec) -> None:
    assert JobSpec.parse(original.dump()) == original


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"{}", b"\xff", b'{"version": 99}', json.dumps({"version": 1, "kind": "x"}).encode()],
)
def test_a_damaged_job_file_is_refused(data: bytes) -> None:
    with pytest.raises(BadJobSpec):
        JobSpec.parse(data)


def test_a_job_file_with_unknown_fields_is_refused() -> None:
    fields = json.loads(spec().dump())
    with pytest.raises(BadJobSpec, match="damaged"):
        JobSpec.parse(json.dumps({**fields, "more": 1}).encode())


def test_ids_have_hadoops_form() -> None:
    assert spec().application_id == APP
    assert attempt_name("job_1700000000000_0007", "m", 3, 1) == "attempt_1700000000000_0007_m_000003_1"


# ---- the plan


def test_a_job_without_reduces_has_one_vertex(tmp_path: Path) -> None:
    splits: list[dict[str, Any]] = [{"hosts": ["h1"]}, {"hosts": []}]
    dag = MapReduceKind().plan(spec(reduces=0), conf(tmp_path), splits)
    assert [(v.name, v.tasks, v.hosts) for v in dag.vertices] == [("map", 2, (("h1",), ()))]
    assert dag.edges == ()


def test_settings_reach_the_plan(tmp_path: Path) -> None:
    settings = {
        "mapreduce.map.memory.mb": "2048",
        "mapreduce.reduce.maxattempts": "2",
        "mapreduce.task.timeout": "5000",
        "mapreduce.job.reduce.slowstart.completedmaps": "0.9",
    }
    dag = MapReduceKind().plan(spec(), conf(tmp_path, **settings), [{}])
    maps, reduces = dag.vertices
    assert maps.resource.memory_mb == 2048
    assert (reduces.max_attempts, reduces.timeout_s, dag.edges[0].slow_start) == (2, 5.0, 0.9)
    assert maps.hosts == ()


# ---- launch contexts


def run_as_a_node_does(command: str, folder: Path) -> str:
    """The script's form: the command verbatim inside double quotes, after expansion."""
    expanded = command.replace("<LOG_DIR>", str(folder)).replace("{{", "$").replace("}}", "")
    script = folder / "launch.sh"
    script.write_text(f'#!/bin/bash\nexec /bin/bash -c "{expanded}"\n')
    subprocess.run(["/bin/bash", str(script)], check=True, timeout=20)
    return (folder / "stdout").read_text()


@pytest.mark.slow
@given(
    words=st.lists(
        st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n<{}", exclude_categories=["Cs"]), max_size=8),
        min_size=1,
        max_size=4,
    )
)
def test_a_command_reaches_its_process_word_for_word(
    words: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    context = command_context(f"exec {shlex.join(['printf', '%s|', *words])}", (), {})
    assert run_as_a_node_does(context.command[0], tmp_path_factory.mktemp("c")) == "".join(f"{w}|" for w in words)


def test_both_ways_to_start_are_told() -> None:
    resource = JobResource("job.json", "hdfs://nn:8020/staging/job.json", 10, 20)
    context = python_context("tez_adapter.tasks.task:main", ["h:1"], [resource], {"A": "b"})
    environment = {e.key: e.value for e in context.environment}
    assert environment == {"A": "b", "YAQ_WARM_ENTRY": "tez_adapter.tasks.task:main", "YAQ_WARM_ARGS": "h:1"}
    variables = "PYTHONPATH={{YAQ_PYTHONPATH}} PYTHONHASHSEED=0"
    start = f"{variables} ${{YAQ_PYTHON:-{sys.executable}}} -m yaqd.model.fixed_addresses tez_adapter.tasks.task h:1 1>"
    assert context.command[0].startswith(start)
    local = context.localResources[0]
    assert (local.key, local.value.size, local.value.timestamp) == ("job.json", 10, 20)
    parts = local.value.resource
    assert (parts.scheme, parts.host, parts.port, parts.file) == ("hdfs", "nn", 8020, "/staging/job.json")


def test_a_local_url_has_no_host_and_port_minus_one() -> None:
    parts = url("file:///tmp/a b")
    assert (parts.scheme, parts.HasField("host"), parts.port, parts.file) == ("file", False, -1, "/tmp/a b")


# ---- files


def test_history_survives_and_its_absence_is_said(tmp_path: Path) -> None:
    settings = conf(tmp_path)
    with pytest.raises(NoHistory, match="application_1700000000000_0007"):
        read_history(settings, APP)
    ends = {"type": "end", "state": "FAILED"}
    lines: list[dict[str, Any]] = [{"type": "job", "name": "n"}, {"type": "attempt", "task": 0}, ends]
    write_history(settings, APP, lines)
    write_history(settings, APP, [dict(line) for line in lines])
    history = read_history(settings, APP)
    assert (history.job, history.attempts, history.end) == ({"name": "n"}, [{"task": 0}], {"state": "FAILED"})


@pytest.mark.parametrize(
    ("acls", "viewers", "mode"), [("true", " ", 0o660), ("true", "bob", 0o644), ("false", " ", 0o644)]
)
def test_history_is_for_its_owner_where_lists_count_and_name_nobody(
    tmp_path: Path, acls: str, viewers: str, mode: int
) -> None:
    settings = conf(tmp_path).with_overrides({"yarn.acl.enable": acls, "mapreduce.job.acl-view-job": viewers})
    before = os.umask(0o022)
    try:
        write_history(settings, APP, [])
    finally:
        os.umask(before)
    (file,) = (tmp_path / "history/yaq").iterdir()
    assert (file.stat().st_mode & 0o7777, file.parent.stat().st_mode & 0o7777) == (mode, 0o1777)


def test_a_damaged_history_is_named(tmp_path: Path) -> None:
    settings = conf(tmp_path)
    write_history(settings, APP, [])
    path = tmp_path / "history/yaq/job_1700000000000_0007.jsonl"
    path.write_text('{"type": "job"}\nnot json\n')
    with pytest.raises(NoHistory, match=r"jsonl:2 is not JSON"):
        read_history(settings, APP)


def test_staging_takes_files_under_other_names_and_goes_away(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello")
    staging = Staging(conf(tmp_path / "s"), "alice", "job_1_0001")
    staging.create()
    with ThreadPoolExecutor() as pool:
        (sent,) = staging.add([f"{tmp_path}/a.txt#b/c.txt"], pool)
        with pytest.raises(SubmitError, match="no file"):
            staging.add([str(tmp_path / "missing")], pool)
    resource = sent.result()
    written = Path(resource.uri.removeprefix("file://"))
    assert (resource.name, resource.bytes, written.read_text()) == ("b/c.txt", 5, "hello")
    assert resource.timestamp_ms == written.stat().st_mtime_ns // 1_000_000
    assert (tmp_path / "s/alice/.staging/job_1_0001").stat().st_mode & 0o777 == 0o700
    staging.remove()
    assert not (tmp_path / "s/alice/.staging/job_1_0001").exists()


def test_the_first_user_makes_the_staging_root_for_everybody(tmp_path: Path) -> None:
    def modes() -> list[str]:
        return [f"{(tmp_path / name).stat().st_mode & 0o7777:o}" for name in ("a", "a/b", "a/b/root")]

    former = os.umask(0o077)
    try:
        Staging(conf(tmp_path / "a/b/root"), "alice", "job_1_0001").create()
        assert modes() == ["755", "755", "1777"]
        for name in ("alice", "alice/.staging", "alice/.staging/job_1_0001"):
            assert (tmp_path / "a/b/root" / name).stat().st_mode & 0o777 == 0o700
        (tmp_path / "a/b/root").chmod(0o1770)  # what stands is its operator's business
        Staging(conf(tmp_path / "a/b/root"), "bob", "job_1_0002").create()
        assert modes() == ["755", "755", "1770"]
    finally:
        os.umask(former)


@pytest.mark.parametrize("text", ["a#", "a#../x", "a#/x", "..", "a/.."])
def test_names_that_leave_the_working_folder_are_refused(text: str) -> None:
    with pytest.raises(SubmitError, match="PATH#NAME"):
        alias_of(text)


# ---- raw output


@given(st.integers(1, 12), st.integers(1, 20), st.data())
def test_raw_blocks_are_the_records_bytes(key_width: int, value_width: int, data: st.DataObject) -> None:
    sized = st.lists(
        st.tuples(
            st.binary(min_size=key_width, max_size=key_width), st.binary(min_size=value_width, max_size=value_width)
        ),
        min_size=1,
        max_size=20,
    )
    pairs = data.draw(sized)
    columns = Columns.from_lists([encode_key(k) for k, _ in pairs], [encode_key(v) for _, v in pairs])
    assert raw_block(columns) == b"".join(k + v for k, v in pairs)


def test_raw_blocks_leave_other_records_to_others() -> None:
    assert raw_block(Columns.from_lists([encode_key("ab")], [encode_key(b"cd")])) is None
    assert raw_block(Columns.from_lists([encode_key(b"a"), encode_key(b"bb")], [encode_key(b"c")] * 2)) is None
    assert raw_block(Columns.empty()) is None


def test_a_tasks_time_is_what_its_process_had_it() -> None:
    drive = Driver(mapreduce(2, 0))
    drive.now = 10.0
    drive.allocate("c1", "h1")
    drive.allocate("c2", "h2")
    drive.now = 30.0  # both have waited at their nodes
    drive(ev.TaskRequested("c1"))
    drive(ev.ContainerCompleted("c2", -102, ""))  # it came back from there
    drive.now = 35.0
    drive(ev.AttemptSucceeded(AttemptId(0, 0, 0)))
    drive.now = 42.0
    drive.allocate("c3", "h3")
    drive(ev.TaskRequested("c1"))
    drive(ev.AttemptSucceeded(AttemptId(0, 1, 1)))
    counters = {
        name: value for group, name, value in JobRecord(spec(), drive.machine, int).counters() if group == JOB_GROUP
    }
    assert counters[JobCounter.TOTAL_LAUNCHED_MAPS.value] == 3
    assert counters[JobCounter.MILLIS_MAPS.value] == 5_000 + 7_000


@pytest.mark.slow
@pytest.mark.parametrize("module", ["tez_adapter.tasks.task", "tez_adapter.client.submit"])
def test_what_only_the_job_manager_needs_is_loaded_by_it_alone(module: str) -> None:
    program = f"import sys, {module}; print('asyncio' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout == b"False\n"
