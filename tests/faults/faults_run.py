"""Kills at random moments while jobs run, and what must hold after them."""

import random
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.ours import OurCluster
from benchmarks.stock import conf
from benchmarks.stock.artifacts import StockUnavailable, fetch
from benchmarks.stock.clients import StockClients
from benchmarks.stock.conf import NodeShape
from benchmarks.stock.daemons import HISTORY_SERVER
from benchmarks.stock.processes import (
    DAEMON_JVM,
    LOGGING,
    Daemon,
    accepts,
    free_ports,
    java_command,
    java_environment,
)
from tests.faults.faults_jobs import ATTEMPTS, Jobs, Started
from tests.faults.faults_kills import kill_something, left_over, restart

_SHAPE = NodeShape(memory_mb=6144, vcores=6)
_POLL_S = 0.05
#: a daemon that was killed is started again within
_LATEST_RESTART_S = 1.5
#: a job that kills held up has this long after the last one
_END_S = 420.0
#: what is left over may take this long to go
_GONE_S = 45.0
_QUICK_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData"
_SITE = {
    "yarn.resourcemanager.am.max-attempts": ATTEMPTS,
    "yarn.app.mapreduce.am.resource.mb": 512,
    "yarn.app.mapreduce.am.command-opts": f"-Xmx300m {_QUICK_JVM}",
    "mapreduce.map.memory.mb": 512,
    "mapreduce.reduce.memory.mb": 512,
    "mapreduce.map.java.opts": f"-Xmx300m {_QUICK_JVM}",
    "mapreduce.reduce.java.opts": f"-Xmx300m {_QUICK_JVM}",
    "mapreduce.task.io.sort.mb": 20,
}


@dataclass
class Report:
    seed: int
    kills: Counter[str] = field(default_factory=Counter)
    #: acknowledged jobs that ended, by program
    jobs: Counter[str] = field(default_factory=Counter)
    #: submissions that no ResourceManager took
    refused: int = 0
    complaints: list[str] = field(default_factory=list)
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        kills = ", ".join(f"{kind} {count}" for kind, count in sorted(self.kills.items()))
        jobs = ", ".join(f"{kind} {count}" for kind, count in sorted(self.jobs.items()))
        total = f"{self.kills.total()} kills of seed {self.seed} in {self.seconds:.0f} s ({kills})"
        ended = f"{self.jobs.total()} acknowledged jobs ended ({jobs}), {self.refused} were not taken"
        return [*self.notes, total, ended, *(self.complaints or ["every one ended right, and nothing was left over"])]

    def as_dict(self) -> dict[str, object]:
        return {
            "seed": self.seed,
            "kills": dict(self.kills),
            "jobs": dict(self.jobs),
            "refused": self.refused,
            "complaints": self.complaints,
            "seconds": round(self.seconds, 1),
        }


def run_kills(
    folder: Path, seed: int, kills: int, *, at_once: int, stock: bool, pause_s: float, note: Callable[[str], None]
) -> Report:
    """The report of so many kills. `stock`: with one job of stock MapReduce at a time among them."""
    report = Report(seed)
    draw = random.Random(seed)
    began = time.monotonic()
    with ExitStack() as stack:
        cluster, clients = _start(folder, stack, report, stock=stock)
        run = _Run(Jobs(folder / "jobs", cluster.conf_dir, clients, draw), cluster.directory, report, note)
        while report.kills.total() < kills:
            run.keep_running(at_once)
            run.wait(draw.uniform(0.2, 2.0) * pause_s)
            killed = kill_something(cluster.directory, draw, spares_daemons=run.is_restarting)
            if killed is None:
                continue
            report.kills[killed.kind] += 1
            if killed.kind.endswith("manager"):
                run.restart(draw.uniform(0.0, _LATEST_RESTART_S))
        run.end()
    report.seconds = time.monotonic() - began
    return report


def _start(folder: Path, stack: ExitStack, report: Report, *, stock: bool) -> tuple[OurCluster, StockClients | None]:
    site: dict[str, object] = dict(_SITE)
    environment = {}
    jars = None
    history = free_ports(3)
    directory = folder.absolute() / "cluster"
    if stock:
        try:
            jars = fetch()
        except StockUnavailable as missing:
            report.notes.append(f"without stock MapReduce: {missing}")
    if jars is not None:
        mapred = conf.mapred_site(jars, directory / "conf", (history[0], history[1], history[2]))
        site = {**mapred, **conf.capacity_site(), **site}
        site["yarn.application.classpath"] = f"{directory / 'conf'},{LOGGING},{jars.directory}/*"
        environment = {"JAVA_HOME": str(jars.java_home)}
    cluster = stack.enter_context(OurCluster(directory, nodes=2, shape=_SHAPE, site=site, environment=environment))
    if jars is None:
        return cluster, None
    command = java_command(jars, cluster.conf_dir, DAEMON_JVM, HISTORY_SERVER, [])
    server = Daemon("historyserver", command, java_environment(jars, cluster.conf_dir), folder / "history.log")
    stack.callback(server.stop)
    server.await_ready(lambda: accepts("127.0.0.1", history[0]), 90.0)
    return cluster, StockClients(jars, cluster.conf_dir)


class _Run:
    """The jobs under way, and those that ended."""

    def __init__(self, jobs: Jobs, cluster: Path, report: Report, note: Callable[[str], None]) -> None:
        self._jobs = jobs
        self._cluster = cluster
        self._report = report
        self._note = note
        self._running: list[Started] = []
        self._outputs: list[Path] = []
        self._restarts = ThreadPoolExecutor(1)
        #: a daemon is down: until it is back, the others are left alone
        self.is_restarting = False

    def keep_running(self, at_once: int) -> None:
        """As many jobs as that, one of them stock MapReduce's where there is one."""
        self._collect()
        while len(self._running) < at_once:
            has_stock = any("stock" in job.name for job in self._running)
            self._running.append(self._jobs.start(stock=self._jobs.clients is not None and not has_stock))

    def wait(self, seconds: float) -> None:
        """Lets the jobs go on for a while."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._collect()
            time.sleep(_POLL_S)

    def restart(self, after_s: float) -> None:
        """Has the daemon that died started again, while jobs run and other kills go on."""
        self.is_restarting = True

        def again() -> None:
            time.sleep(after_s)
            if problem := restart(self._cluster):
                self._complain(f"the cluster does not start again: {problem}")
            self.is_restarting = False

        self._restarts.submit(again)

    def end(self) -> None:
        """Waits for the last jobs; then nothing may be left over."""
        self._restarts.shutdown()
        until = time.monotonic() + _END_S
        while self._running and time.monotonic() < until:
            self._collect()
            time.sleep(_POLL_S)
        for job in self._running:
            self._complain(f"{job.name} ({job.application()}) has not ended after {_END_S:g} s: {_tail(job)}")
            job.process.kill()
            job.process.wait()
        until = time.monotonic() + _GONE_S
        while (left := left_over(self._cluster, self._outputs)) and time.monotonic() < until:
            time.sleep(_POLL_S)
        for line in left:
            self._complain(f"left over: {line}")

    def _collect(self) -> None:
        for job in [job for job in self._running if job.process.poll() is not None]:
            self._running.remove(job)
            self._outputs.append(job.output)
            if job.application() is None:
                self._report.refused += 1
                continue
            self._report.jobs[job.name.partition(" ")[2]] += 1
            if job.process.returncode != 0 or not job.is_right():
                what = "with the right output" if job.is_right() else "without the right output"
                code = job.process.returncode
                self._complain(f"{job.name} ({job.application()}) ended with code {code}, {what}: {_tail(job)}")

    def _complain(self, text: str) -> None:
        self._report.complaints.append(text)
        self._note(text)


def _tail(job: Started) -> str:
    lines = [line for line in job.said.read_text(errors="replace").splitlines() if "=" not in line]
    return " / ".join(lines[-6:])[-900:]
