"""Log aggregation's parts by themselves: upload processes, policies, records, settings."""

import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nm.daemon import NodeManager
from nm.logs.aggregation.policies import BadPolicy, ContainerEnd, Sample, parse_policy
from nm.logs.aggregation.records import LogRecord, LogRecords
from nm.logs.aggregation.upload import Upload
from nm.logs.aggregation.uploaders import Uploaders
from tests.nm.nm_cluster import (
    application,
    container_id,
    node_configuration,
)
from yaqd.config import Configuration
from yaqd.model import ContainerId, ContainerType, ExitStatus
from yaqd.proto import yarn_common_pb2 as common
from yaqd.storage import StorageError
from yaqd.storage.tfile import RemoteLogs

APP = application()
ONE, TWO = (container_id(number) for number in (1, 2))


_ECHO = """
import json, os, sys
sys.stdin.readline()
for line in sys.stdin:
    work = json.loads(line)["upload"]
    if work["application"] == "hang":
        while True: os.read(sys.stdin.fileno(), 1) or os._exit(0)
    if work["application"] == "die":
        sys.exit(1)
    open(work["node"], "a").write(f"{os.getpid()} {os.environ['HADOOP_USER_NAME']}\\n")
    answer = {"error": "no room"} if work["application"] == "fail" else {"result": None}
    print(json.dumps(answer), flush=True)
    if work["application"] == "last":
        sys.exit(0)
"""


def _uploaders(timeout_s: float = 20.0) -> Uploaders:
    return Uploaders(
        Configuration.load(environ={}),
        is_local=False,
        daemon_user="yarn",
        timeout_s=timeout_s,
        command=(sys.executable, "-c", _ECHO),
    )


def _work(application: str, user: str, mark: Path) -> Upload:
    return Upload(user, application, str(mark), "none", {}, [], [], None, 0, 1)


def test_each_user_has_a_process_which_is_used_again(tmp_path: Path) -> None:
    uploaders = _uploaders()
    mark = tmp_path / "mark"
    try:
        for user in ("alice", "bob", "alice"):
            uploaders.upload(_work("x", user, mark))
        with pytest.raises(StorageError, match="no room"):
            uploaders.upload(_work("fail", "bob", mark))
        with pytest.raises(StorageError, match="ended without an answer"):
            uploaders.upload(_work("die", "carol", mark))
    finally:
        uploaders.close()
    rows = [line.split() for line in mark.read_text().splitlines()]
    assert [user for _, user in rows] == ["alice", "bob", "alice", "bob"]
    assert rows[0] == rows[2]
    assert rows[1] == rows[3]
    assert rows[0][0] != rows[1][0]


def test_an_idle_process_that_has_ended_is_replaced(tmp_path: Path) -> None:
    uploaders = _uploaders()
    try:
        for _ in range(3):
            uploaders.upload(_work("last", "alice", tmp_path / "mark"))
    finally:
        uploaders.close()
    assert len(set((tmp_path / "mark").read_text().splitlines())) == 3


def test_a_file_system_that_hangs_costs_its_process(tmp_path: Path) -> None:
    uploaders = _uploaders(timeout_s=0.3)
    try:
        with pytest.raises(StorageError, match="did not answer user alice within"):
            uploaders.upload(_work("hang", "alice", tmp_path / "mark"))
    finally:
        uploaders.close()


def test_closing_ends_processes_and_what_waits_for_them(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    uploaders = _uploaders()
    uploaders.upload(_work("x", "alice", tmp_path / "mark"))
    with ThreadPoolExecutor(1) as threads:
        stuck = threads.submit(uploaders.upload, _work("hang", "alice", tmp_path / "mark"))
        while not uploaders._busy:
            time.sleep(0.001)
        uploaders.close()
        with pytest.raises(StorageError):
            stuck.result(timeout=20)
    pid = int((tmp_path / "mark").read_text().split()[0])
    with pytest.raises(ProcessLookupError):
        os.kill(pid, signal.SIG_DFL)
    with pytest.raises(StorageError, match="stops"):
        uploaders.upload(_work("x", "alice", tmp_path / "mark"))


# Policies and records -------------------------------------------------------------------------------------------------

_HADOOP = "org.apache.hadoop.yarn.server.nodemanager.containermanager.logaggregation."


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("AllContainer", {"master", "ok", "failed", "killed", "excess"}),
        ("NoneContainer", set()),
        ("AMOnly", {"master"}),
        ("AMOrFailedContainer", {"master", "failed", "excess"}),
        ("FailedContainer", {"failed", "excess"}),
        ("FailedOrKilledContainer", {"failed", "killed", "excess"}),
        ("LimitSizeContainer", {"master", "ok", "failed", "killed"}),
    ],
)
def test_hadoops_policies(name: str, kept: set[str]) -> None:
    policy = parse_policy(f"{_HADOOP}{name}LogAggregationPolicy", "")
    ends = {
        "master": ContainerEnd(ONE, ContainerType.APPLICATION_MASTER, 0),
        "ok": ContainerEnd(TWO, ContainerType.TASK, 0),
        "failed": ContainerEnd(TWO, ContainerType.TASK, 1),
        "killed": ContainerEnd(TWO, ContainerType.TASK, 143),
        "excess": ContainerEnd(TWO, ContainerType.TASK, ExitStatus.KILLED_FOR_EXCESS_LOGS),
    }
    assert {name for name, end in ends.items() if policy(end)} == kept


def test_the_sample_keeps_the_first_ones_all_failures_and_about_its_share_of_the_rest() -> None:
    policy = parse_policy("SampleContainerLogAggregationPolicy", "SR:0.3,MIN:10")
    assert policy == Sample(0.3, 10)
    ok = [ContainerEnd(container_id(number), ContainerType.TASK, 0) for number in range(2, 2002)]
    kept = [end for end in ok if policy(end)]
    assert kept[:10] == ok[:10]
    assert 500 < len(kept) < 700
    assert all(policy(ContainerEnd(end.container_id, ContainerType.TASK, 1)) for end in ok)
    assert Sample.parse("SR:7,MIN:x,,") == Sample()


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(BadPolicy):
        parse_policy("com.example.Mine", "")


@given(
    st.text(max_size=30),
    st.dictionaries(st.sampled_from(["VIEW_APP", "MODIFY_APP"]), st.text(max_size=30)),
    st.none() | st.builds(common.LogAggregationContext, include_pattern=st.text(st.characters(codec="utf-8"))),
)
def test_records_come_back(user: str, acls: dict[str, str], context: common.LogAggregationContext | None) -> None:
    record = LogRecord(APP, user, "h:1", acls, context)
    assert LogRecord.decode(APP, record.encode()) == record


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", json.dumps({"user": 1, "node": 2, "acls": 3}).encode(), b"\xff"])
def test_a_broken_record_is_no_record(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(ValueError, match="no record"):
        LogRecord.decode(APP, data)
    (tmp_path / ".aggregation").mkdir()
    (tmp_path / ".aggregation" / f"{APP}.json").write_bytes(data)
    records = LogRecords([tmp_path])
    assert records.load() == []
    assert not list((tmp_path / ".aggregation").iterdir())


def test_a_container_of_another_application_is_not_taken_for_ones_own(tmp_path: Path) -> None:
    for name in (str(ONE), str(container_id(1, 2)), "container_x"):
        (tmp_path / str(APP) / name).mkdir(parents=True)
    assert LogRecords([tmp_path]).containers(APP) == [ONE]


def test_bad_settings_are_told_at_start(tmp_path: Path) -> None:
    from yaqd.config import ConfigError

    for key, value in (
        ("policy.class", "com.example.Mine"),
        ("compression-type", "lzo"),
        ("num-log-files-per-app", "0"),
    ):
        conf = node_configuration(
            tmp_path, 1, {"yarn.log-aggregation-enable": "true", f"yarn.nodemanager.log-aggregation.{key}": value}
        )
        with pytest.raises(ConfigError, match=key):
            NodeManager(conf)


def test_where_logs_lie_is_said_by_hadoops_keys() -> None:
    conf = Configuration.load(
        environ={},
        overrides={
            "fs.defaultFS": "hdfs://nn:8020",
            "yarn.nodemanager.remote-app-log-dir": "/a",
            "yarn.log-aggregation.TFile.remote-app-log-dir": "/b",
            "yarn.nodemanager.remote-app-log-dir-suffix": "x",
        },
    )
    remote = RemoteLogs.read(conf)
    assert (remote.root, remote.suffix, remote.older_suffix) == ("hdfs://nn:8020/b", "x-tfile", "x")
    assert ContainerId.parse(str(ONE)) == ONE
