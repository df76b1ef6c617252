"""Nodes and queues as unmodified programs see them: racks, decommission, placement on named nodes, preemption."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from benchmarks.interop_cluster import InteropCluster
from benchmarks.ours import YaqRun
from benchmarks.stock.artifacts import HadoopJars
from benchmarks.stock.daemons import StockHdfs
from tests.interop.interop_checks import application_of, final_state, output_lines
from tests.interop.interop_master import await_value

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]
CLIENT = "nodes and queues"

_JVM = "-Xmx300m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData"
_PREEMPTION = "yarn.resourcemanager.monitor.capacity.preemption"
_QUEUES = "yarn.scheduler.capacity"
SITE = {
    "yarn.nodemanager.resource.memory-mb": 3072,
    "yarn.scheduler.maximum-allocation-mb": 3072,
    "yarn.resourcemanager.placement-constraints.handler": "scheduler",
    "yarn.resourcemanager.scheduler.monitor.enable": "true",
    f"{_PREEMPTION}.monitoring_interval": 1000,
    f"{_PREEMPTION}.max_wait_before_kill": 2000,
    f"{_PREEMPTION}.total_preemption_per_round": 1.0,
    f"{_PREEMPTION}.natural_termination_factor": 1.0,
    f"{_QUEUES}.root.queues": "default,a,b",
    f"{_QUEUES}.root.default.capacity": 20,
    f"{_QUEUES}.root.a.capacity": 40,
    f"{_QUEUES}.root.b.capacity": 40,
    f"{_QUEUES}.root.a.user-limit-factor": 100,
    f"{_QUEUES}.root.b.user-limit-factor": 100,
    "yarn.app.mapreduce.am.resource.mb": 512,
    "yarn.app.mapreduce.am.command-opts": _JVM,
    "yarn.app.mapreduce.am.scheduler.heartbeat.interval-ms": 200,
    "mapreduce.map.memory.mb": 512,
    "mapreduce.reduce.memory.mb": 512,
    "mapreduce.map.java.opts": _JVM,
    "mapreduce.reduce.java.opts": _JVM,
    "mapreduce.task.io.sort.mb": 20,
    "mapreduce.client.progressmonitor.pollinterval": 200,
}
_PATIENCE_S = 120.0
#: the cluster's own node, and one that comes and goes
HOME, AWAY = "127.0.0.1", "127.0.0.2"


class Guest:
    """A NodeManager of ours on an address of its own, started and ended by the tests."""

    def __init__(self, cluster: InteropCluster, folder: Path) -> None:
        self._cluster = cluster
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.log = cluster.ours.directory / "logs" / "guest.log"

    def start(self) -> None:
        settings = {
            **{f"yarn.nodemanager.{name}": f"{AWAY}:0" for name in ("address", "webapp.address", "localizer.address")},
            "yarn.nodemanager.hostname": AWAY,
            "mapreduce.shuffle.port": 0,
            "yarn.nodemanager.local-dirs": self._folder / "local",
            "yarn.nodemanager.log-dirs": self._folder / "logs",
            "yarn.nodemanager.recovery.dir": self._folder / "recovery",
        }
        words = [word for key, value in settings.items() for word in ("-D", f"{key}={value}")]
        conf = ["--conf", str(self._cluster.ours.conf_dir)]
        with (self._folder / "guest.out").open("wb") as printed:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "yaqd.cli", "nm", "start", "--name", "guest", *words, *conf],
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=subprocess.STDOUT,
                env={
                    **os.environ,
                    "JAVA_HOME": str(self._cluster.jars.java_home),
                    "HADOOP_CONF_DIR": str(self._cluster.ours.conf_dir),
                },
                cwd=self._folder,
            )

    def ended(self) -> bool | None:
        return self._process is None or self._process.poll() is not None or None

    def end(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(30)


class Site:
    """The cluster, its host file and its guest."""

    def __init__(self, cluster: InteropCluster, exclude: Path, guest: Guest) -> None:
        self.cluster = cluster
        self.exclude = exclude
        self.guest = guest
        self.clients = cluster.clients

    def states(self) -> dict[str, str]:
        """Host and state of each node as `yarn node -list -all` prints them."""
        printed = self.clients.yarn("node", "-list", "-all").checked().stdout
        return dict(re.findall(r"^\s*(127\.\d+\.\d+\.\d+):-?\d+\s+(\w+)", printed, re.MULTILINE))

    def running(self) -> int:
        """How many nodes run."""
        return sum(node["state"] == "RUNNING" for node in self._nodes())

    def busy(self, host: str) -> int:
        """How many containers the host's node has."""
        return sum(int(node["containers"]) for node in self._nodes() if node["id"].startswith(f"{host}:"))

    def _nodes(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.cluster.ours.yaq("node", "list", "--json").stdout)
        return found

    def guest_joins(self) -> None:
        self.exclude.write_text("")
        self.clients.yarn("rmadmin", "-refreshNodes").checked()
        self.guest.start()
        await_value("the guest", lambda: self.running() == 2 or None, _PATIENCE_S)


@pytest.fixture(scope="module")
def site(hadoop: HadoopJars, hdfs: StockHdfs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One node of the cluster's own, one guest, each in a rack of its own; two queues with guarantees."""
    folder = tmp_path_factory.mktemp("nodes")
    exclude, racks = folder / "exclude", folder / "racks.sh"
    exclude.write_text("")
    racks.write_text(f"#!/bin/sh\ncase $1 in {AWAY}) echo /away;; *) echo /home;; esac\n")
    racks.chmod(0o755)
    settings = {
        **SITE,
        "yarn.resourcemanager.nodes.exclude-path": exclude,
        "net.topology.script.file.name": racks,
    }
    with InteropCluster(hadoop, folder / "c", hdfs, nodes=1, site=settings) as running:
        guest = Guest(running, folder)
        guest.start()
        here = Site(running, exclude, guest)
        try:
            await_value("the guest", lambda: here.running() == 2 or None, _PATIENCE_S)
            yield here
        finally:
            guest.end()


def _in_background(pool: ThreadPoolExecutor, site: Site, *words: str) -> "Future[YaqRun]":
    return pool.submit(site.cluster.ours.yaq, *words)


def test_racks_are_those_of_the_topology_program(site: Site) -> None:
    assert site.states() == {HOME: "RUNNING", AWAY: "RUNNING"}
    printed = site.clients.yarn("node", "-list").checked().stdout
    away = re.search(rf"{AWAY}:\d+", printed)
    assert away is not None
    assert "Rack : /away" in site.clients.yarn("node", "-status", away[0]).checked().stdout


def test_distributed_shell_spreads_containers_over_nodes(site: Site, tmp_path: Path) -> None:
    script = tmp_path / "where.sh"
    script.write_text(f"echo $NM_HOST > {tmp_path}/$CONTAINER_ID.host\n")
    run = site.clients.distributed_shell(
        *("-shell_script", str(script), "-placement_spec", "foo(2),NOTIN,NODE,foo"),
        *("-master_memory", "256", "-container_memory", "256", "-timeout", "60000"),
    ).checked()
    assert "Application completed successfully" in run.stdout + run.stderr
    assert sorted(file.read_text().strip() for file in tmp_path.glob("*.host")) == [HOME, AWAY]


def test_our_command_on_a_named_node(site: Site) -> None:
    run = site.cluster.ours.yaq("run", "-n", "2", "--node", AWAY, "--logs", "--", "sh", "-c", "echo on $NM_HOST")
    assert run.stdout.splitlines().count(f"on {AWAY}") == 2


@pytest.mark.full
def test_queue_takes_back_its_share_and_both_jobs_are_right(site: Site, tmp_path: Path) -> None:
    """Ours fills the cluster; a stock one in the other queue gets its guarantee within the grace period."""
    text, release = tmp_path / "words.txt", tmp_path / "release"
    text.write_text("to be or not to be\n")
    site.clients.fs("-put", str(text), "/preempted.txt").checked()
    with ThreadPoolExecutor(1) as pool:
        ours = _in_background(
            *(pool, site, "run", "-n", "11", "--memory", "512", "--queue", "a", "--logs"),
            *("--", "sh", "-c", f"while [ ! -e {release} ]; do sleep 0.2; done; echo done"),
        )
        try:
            await_value("our job to fill the cluster", lambda: _used(site, "a") > 2.0 or None, _PATIENCE_S)
            stock = site.clients.example(
                "wordcount", "-Dmapreduce.job.queuename=b", "/preempted.txt", "/preempted-counts"
            ).checked()
        finally:
            release.touch()
        printed = ours.result(timeout=240).stdout
    assert output_lines(site.cluster, "/preempted-counts") == ["be\t2", "not\t1", "or\t1", "to\t2"]
    assert final_state(site.cluster, application_of(stock)) == "SUCCEEDED"
    assert printed.splitlines().count("done") == 11, "a container that was taken back ran again"
    found = re.search(r"(\d+_\d+)_\d+_\d+ on ", printed)
    assert found is not None, printed
    status = site.clients.yarn("application", "-status", f"application_{found[1]}").checked().stdout
    preempted = re.search(r"Aggregate Resource Preempted : (\d+) MB-seconds", status)
    assert preempted is not None and int(preempted[1]) > 0, status


def _used(site: Site, queue: str) -> float:
    """How much of its guarantee the queue holds."""
    listed = json.loads(site.cluster.ours.yaq("queue", "list", queue, "--json").stdout)
    return float(listed[0]["current_capacity"])


def test_node_is_drained_by_the_stock_command_and_let_back_in(site: Site) -> None:
    # A stock master sleeps 5 s after its job's end, and is no sign of this job.
    await_value("earlier jobs to be gone", lambda: not site.busy(AWAY) or None, _PATIENCE_S)
    with ThreadPoolExecutor(1) as pool:
        job = _in_background(pool, site, "run", "--node", AWAY, "--", "sleep", "6")
        await_value("its container", lambda: site.busy(AWAY) or None, _PATIENCE_S)
        site.exclude.write_text(AWAY)
        drained = site.clients.yarn("rmadmin", "-refreshNodes", "-g", "60", "-client").checked()
        assert "Graceful decommissioning completed" in drained.stdout + drained.stderr
        job.result(timeout=60)
    assert site.states() == {HOME: "RUNNING", AWAY: "DECOMMISSIONED"}
    await_value("the guest's end", site.guest.ended, _PATIENCE_S)
    (line,) = [text for text in site.guest.log.read_text().splitlines() if "shuts this node down" in text]
    assert f"DECOMMISSIONING {AWAY}" in line and "is ready to be decommissioned" in line
    site.guest_joins()
    assert site.states() == {HOME: "RUNNING", AWAY: "RUNNING"}


@pytest.mark.full
def test_excluded_node_is_sent_away_at_once_and_not_let_in_again(site: Site) -> None:
    site.exclude.write_text(AWAY)
    site.clients.yarn("rmadmin", "-refreshNodes").checked()
    await_value("the guest's end", site.guest.ended, _PATIENCE_S)
    assert f"hostname: {AWAY}" in site.guest.log.read_text()
    site.guest.start()
    await_value("the guest's end", site.guest.ended, _PATIENCE_S)
    refusal = f"Disallowed NodeManager from  {AWAY}, Sending SHUTDOWN signal to the NodeManager."
    assert len([line for line in site.guest.log.read_text().splitlines() if refusal in line]) == 1
    assert site.states() == {HOME: "RUNNING", AWAY: "DECOMMISSIONED"}
    site.guest_joins()
