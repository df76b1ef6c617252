"""The local cluster's folder, processes and configuration; starting real daemons is in the slow tests."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from yaqd.cli.app import yaq
from yaqd.cli.exits import CommandError
from yaqd.cli.local import LocalCluster, machine, site
from yaqd.cli.local.cluster import ClusterStatus, DaemonStatus
from yaqd.cli.local.processes import (
    ProcessIdentity,
    end_all,
    group_members,
    left_by,
    processes_working_under,
    proportional_set_bytes,
    running_clusters,
    wait_for_end,
)
from yaqd.cli.local.site import LocalShape, free_ports, write_conf
from yaqd.config import Configuration
from yaqd.config.check import Severity, check_folder

PORTS = [10001, 10002, 10003, 10004, 10005]
SLEEP = [sys.executable, "-c", "import time; print(flush=True); time.sleep(60)"]
STUBBORN = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(15, signal.SIG_IGN); print(flush=True); time.sleep(60)",
]


Spawn = Callable[..., ProcessIdentity]


@pytest.fixture
def spawn(tmp_path: Path) -> Iterator[Spawn]:
    started: list[subprocess.Popen[bytes]] = []

    def start(command: list[str], cwd: Path = tmp_path) -> ProcessIdentity:
        process = subprocess.Popen(command, cwd=cwd, start_new_session=True, stdout=subprocess.PIPE)
        started.append(process)
        assert process.stdout is not None
        process.stdout.readline()  # it is past its imports and has set its signals
        identity = ProcessIdentity.of(process.pid)
        assert identity is not None
        return identity

    yield start
    for process in started:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def test_a_pid_file_names_pid_and_start_so_that_a_reused_pid_is_not_taken_for_it(tmp_path: Path) -> None:
    own = ProcessIdentity.of(os.getpid())
    assert own is not None and own.is_alive()
    file = tmp_path / "x.pid"
    own.write(file)
    assert ProcessIdentity.read(file) == own
    file.write_text(f"{own.pid} {own.started_ticks + 1}\n")
    other = ProcessIdentity.read(file)
    assert other is not None and not other.is_alive()


@pytest.mark.parametrize("text", ["", "12", "a b", "1 2 3"])
def test_a_damaged_pid_file_is_no_process(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.pid").write_text(text)
    assert ProcessIdentity.read(tmp_path / "x.pid") is None
    assert ProcessIdentity.read(tmp_path / "missing.pid") is None


def test_a_zombie_is_not_alive() -> None:
    process = subprocess.Popen(["true"])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert ProcessIdentity.of(process.pid) is None
    process.wait()


def test_ending_is_gentle_first_and_then_not(spawn: Spawn) -> None:
    gentle, stubborn = spawn(SLEEP), spawn(STUBBORN)
    assert end_all([gentle, stubborn], 0.3) == [stubborn]
    assert not gentle.is_alive() and not stubborn.is_alive()
    assert end_all([gentle], 0.0) == []
    assert wait_for_end([stubborn], 0.0) == []


def test_processes_are_found_by_working_folder_and_group(tmp_path: Path, spawn: Spawn) -> None:
    inside = tmp_path / "nodes"
    inside.mkdir()
    process = spawn(SLEEP, inside)
    assert processes_working_under(inside) == [process]
    assert processes_working_under(tmp_path / "node") == []
    assert group_members(process) == [process]
    assert (proportional_set_bytes(process) or 0) > 1 << 20
    process.signal_group(signal.SIGKILL)
    wait_for_end([process], 5.0)
    assert proportional_set_bytes(process) is None


def test_the_written_configuration_is_sound_and_complete(tmp_path: Path) -> None:
    write_conf(tmp_path, LocalShape(3, None, {}), PORTS)
    conf_dir = tmp_path / "conf"
    assert [f for f in check_folder(conf_dir) if f.severity is Severity.ERROR] == []
    conf = Configuration.load(conf_dir)
    names = ("address", "scheduler.address", "resource-tracker.address", "admin.address", "webapp.address")
    addresses = [conf.get_address(f"yarn.resourcemanager.{name}") for name in names]
    assert addresses == [("127.0.0.1", port) for port in PORTS]
    proxy = "yarn.nodemanager.amrmproxy.address"
    assert conf.get_address(proxy) == ("127.0.0.1", 0), "each node's own"
    assert conf.get("fs.defaultFS") == "file:///"
    assert (conf.get("yarn.app.mapreduce.am.staging-dir") or "").startswith(str(tmp_path))
    assert conf.get_int("yarn.scheduler.maximum-allocation-mb") == conf.get_int("yarn.nodemanager.resource.memory-mb")
    assert conf.capacity_scheduler().get_list("yarn.scheduler.capacity.root.queues") == ["default"]


def test_masters_may_be_silent_for_as_long_as_hadoop_lets_them(tmp_path: Path) -> None:
    write_conf(tmp_path, LocalShape(1, None, {}), PORTS)
    conf = Configuration.load(tmp_path / "conf")
    assert conf.get_duration_ms("yarn.am.liveness-monitor.expiry-interval-ms") == 900_000
    assert conf.get_duration_ms("yarn.nm.liveness-monitor.expiry-interval-ms") < 60_000, "nodes are missed soon"


def test_settings_go_to_the_file_where_hadoop_looks_for_them(tmp_path: Path) -> None:
    defines = {
        "fs.x": "core",
        "dfs.replication": "2",
        "mapreduce.job.reduces": "3",
        "yarn.app.mapreduce.am.resource.mb": "256",
        "yarn.acl.enable": "true",
        "my.key": "yarn",
        "yarn.scheduler.capacity.root.queues": "a,b",
    }
    write_conf(tmp_path, LocalShape(1, "hdfs://h:9000", defines), PORTS)
    conf = Configuration.load(tmp_path / "conf")
    assert {key: conf.get(key) for key in list(defines)[:-1]} == dict(list(defines.items())[:-1])
    files = {key: conf.origin(key).file.name for key in list(defines)[:-1]}  # type: ignore[union-attr]
    assert list(files.values()) == [
        "core-site.xml",
        "hdfs-site.xml",
        "mapred-site.xml",
        "mapred-site.xml",
        "yarn-site.xml",
        "yarn-site.xml",
    ]
    assert conf.get("fs.defaultFS") == "hdfs://h:9000"
    assert conf.capacity_scheduler().get_list("yarn.scheduler.capacity.root.queues") == ["a", "b"]


def test_edited_queues_survive_the_next_start(tmp_path: Path) -> None:
    write_conf(tmp_path, LocalShape(1, None, {}), PORTS)
    queues = tmp_path / "conf/capacity-scheduler.xml"
    queues.write_text("<configuration/>")
    write_conf(tmp_path, LocalShape(2, None, {}), PORTS)
    assert queues.read_text() == "<configuration/>"


def test_ports_are_kept_where_they_are_free() -> None:
    first = free_ports([0, 0, 0])
    assert len(set(first)) == 3
    assert free_ports(first) == first
    assert site.free_ports([first[0], first[0]])[0] == first[0]
    assert len(set(free_ports([first[0], first[0]]))) == 2


def test_no_port_is_one_that_a_connecting_client_could_be_given_meanwhile() -> None:
    first_client_port = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert max(free_ports([0] * 50)) < first_client_port


def test_ports_are_found_where_the_kernel_does_not_say(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(site, "_CLIENT_PORTS", tmp_path / "none")
    assert len(set(free_ports([0, 0]))) == 2


@pytest.mark.parametrize("nodes", [1, 2, 3, 100])
def test_the_nodes_share_the_machine(nodes: int) -> None:
    memory = machine.node_memory_mb(nodes)
    assert memory >= machine.NODE_MEMORY_MIN_MB
    assert nodes * memory * machine.MB <= machine.memory_bytes() or memory == machine.NODE_MEMORY_MIN_MB
    assert machine.cores() < nodes * machine.node_vcores(nodes) <= machine.cores() + nodes + 1


def test_a_folder_of_somebody_elses_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(CommandError, match="not empty and holds no cluster"):
        LocalCluster(tmp_path).start(1)
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.tex"]


def test_two_starts_at_once_in_a_new_folder_are_told_apart_from_a_folder_of_somebody_elses(tmp_path: Path) -> None:
    first = LocalCluster(tmp_path / "c")
    first._prepare()
    with first._locked():
        first.conf_dir.mkdir()  # as it has before its record
        with pytest.raises(CommandError, match=r"another yaq cluster start is under way in .*/c; wait for it"):
            LocalCluster(tmp_path / "c").start(1)
    with pytest.raises(CommandError, match="not empty and holds no cluster"):
        LocalCluster(tmp_path / "c").start(1)  # nobody is at work there
    first.conf_dir.rmdir()
    LocalCluster(tmp_path / "c")._prepare()  # what one that was killed there had made
    lock = tmp_path / "mine" / "run" / "lock"
    lock.parent.mkdir(parents=True)
    lock.write_text("precious")
    (tmp_path / "mine" / "run" / "thesis.tex").write_text("x")
    with pytest.raises(CommandError, match="not empty and holds no cluster"):
        LocalCluster(tmp_path / "mine").start(1)
    assert lock.read_text() == "precious"


@pytest.mark.parametrize(
    "words", [("cluster", "start", "--dir", "c", "--timeout", "-1"), ("demo", "--top", "-1"), ("demo", "--top", "x")]
)
def test_numbers_that_cannot_be_are_refused_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(yaq, words)
    assert result.exit_code == 2 and words[-2] in result.output
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(CommandError, match="file/c: cannot hold a cluster: Not a directory"):
        LocalCluster(tmp_path / "file" / "c").start(1)


def test_a_full_disk_is_named_and_nothing_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(CommandError, match="cannot hold a cluster: No space left on device"):
        LocalCluster(tmp_path / "c").start(1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("nodes", [0, -1, 100_000])
def test_an_impossible_number_of_nodes_is_refused(tmp_path: Path, nodes: int) -> None:
    with pytest.raises(CommandError, match="give a number from 1 to 256"):
        LocalCluster(tmp_path).start(nodes)


def test_a_refused_start_leaves_a_folder_that_the_next_one_takes(tmp_path: Path) -> None:
    for nodes, hdfs in ((0, None), (1, "nonsense")):
        with pytest.raises(CommandError):
            LocalCluster(tmp_path / "c").start(nodes, hdfs)
    assert not (tmp_path / "c").exists()


def test_a_running_daemon_is_not_started_again_and_a_lock_is_respected(tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text("{}")
    (tmp_path / "run").mkdir()
    own = ProcessIdentity.of(os.getpid())
    assert own is not None
    own.write(tmp_path / "run/resourcemanager.pid")
    cluster = LocalCluster(tmp_path)
    with pytest.raises(
        CommandError, match=r"\(resourcemanager\); nodemanager-1 died and can be started with .*; stop it"
    ):
        cluster.start(2)
    own.write(tmp_path / "run/nodemanager-1.pid")
    for nodes in (None, 1, 2):
        with pytest.raises(
            CommandError, match=r"already running in .* \(resourcemanager, nodemanager-1\); stop it first"
        ):
            cluster.start(nodes)
    with cluster._locked(), pytest.raises(CommandError, match="another yaq cluster command"):
        LocalCluster(tmp_path).stop()


def test_stopping_cleans_up_after_daemons_that_died(tmp_path: Path, spawn: Spawn) -> None:
    (tmp_path / "cluster.json").write_text("{}")
    for folder in ("run", "nodes"):
        (tmp_path / folder).mkdir()
    (tmp_path / "run/nodemanager-1.pid").write_text("1 1\n")
    orphan = spawn(STUBBORN, tmp_path / "nodes")
    cluster = LocalCluster(tmp_path)
    assert [(d.name, d.is_running) for d in cluster.status().daemons] == [("nodemanager-1", False)]
    assert cluster.stop() == []
    assert not orphan.is_alive()
    assert cluster.status().daemons == []


def test_who_names_a_folder_without_a_cluster_is_told_where_one_runs(tmp_path: Path) -> None:
    words = ["-c", "import sys; print(flush=True); sys.stdin.read()", "-m", "yaqd.cli", "rm", "start", "--conf"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    command = [sys.executable, *words, str(tmp_path / "c/conf")]
    with subprocess.Popen(command, **pipes) as daemon:  # type: ignore[call-overload]
        daemon.stdout.readline()
        assert tmp_path / "c" in running_clusters()
        with pytest.raises(CommandError, match=f"^{tmp_path} holds no cluster, give .*; those of /.* run here$"):
            LocalCluster(tmp_path).stop()
        daemon.kill()
    assert tmp_path / "c" not in running_clusters()


def test_what_a_dead_leader_left_in_its_group_is_found(tmp_path: Path) -> None:
    leads = "import subprocess, sys; subprocess.Popen(['sleep', '60']); print(flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", leads]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, cwd=tmp_path, start_new_session=True, **pipes) as leader:  # type: ignore[call-overload]
        leader.stdout.readline()
        identity = ProcessIdentity.of(leader.pid)
        assert identity is not None
        assert left_by([identity], tmp_path) == []  # it lives
        leader.kill()
        leader.wait()
        (left,) = left_by([identity, ProcessIdentity(0, -1)], tmp_path)
        assert left_by([identity], tmp_path / "elsewhere") == []
        os.kill(left.pid, signal.SIGKILL)


def test_a_daemon_that_a_signal_has_stopped_does_not_answer(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        try:
            identity = ProcessIdentity.of(process.pid)
            assert identity is not None and not identity.is_halted()
            process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, process.pid, os.WSTOPPED)
            assert identity.is_halted() and identity.is_alive()
            assert not ProcessIdentity(process.pid, -1).is_halted(), "the pid is another one's by now"
            process.send_signal(signal.SIGCONT)
            os.waitid(os.P_PID, process.pid, os.WCONTINUED)
            assert not identity.is_halted()
        finally:
            process.kill()
    assert not identity.is_halted()
    halted = DaemonStatus("nodemanager-1", 1, True, tmp_path / "log", is_halted=True)
    status = ClusterStatus([DaemonStatus("resourcemanager", 1, True, tmp_path / "log"), halted], nodes_running=1)
    assert (status.is_running, status.nodes_ready) == (False, 0)


def test_a_node_whose_daemon_died_is_not_ready_while_the_resourcemanager_waits_for_it(tmp_path: Path) -> None:
    lives = {"resourcemanager": True, "nodemanager-1": True, "nodemanager-2": False}
    daemons = [DaemonStatus(name, 1, is_running, tmp_path / name) for name, is_running in lives.items()]
    assert ClusterStatus(daemons, nodes_running=2).nodes_ready == 1
    assert ClusterStatus(daemons, nodes_running=0).nodes_ready == 0
    assert ClusterStatus(daemons, nodes_running=None).nodes_ready is None
