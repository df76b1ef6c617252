"""The fuzzer's cluster: real daemons in processes of their own, a recorded job, an application that stays, and the
measures of their health."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.hostile.fuzz_corpus import Corpus
from tests.hostile.fuzz_driver import Door
from tez_adapter.client.follow import SubmittedJob
from tez_adapter.client.submit import submit_mapreduce
from tez_adapter.protocol import JobClientProtocol, TaskUmbilicalProtocol
from yaqd.cli.local import LocalCluster
from yaqd.cli.local.processes import ProcessIdentity, proportional_set_bytes
from yaqd.config import Configuration
from yaqd.ipc import NO_RETRY, BlockingRpcClient, RemoteException, RpcError
from yaqd.model import ApplicationId
from yaqd.proto import job_pb2 as job
from yaqd.proto import yarn_admin_pb2 as admin
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_service_pb2 as service
from yaqd.proto.protocols import ApplicationClientProtocol, ApplicationMasterProtocol, ContainerManagementProtocol
from yaqd.proto.protocols import ResourceManagerAdministrationProtocol as Administration
from yaqd.security import Token

HERE = Path(__file__).resolve().parent
_SETTINGS = {
    # nodes that the fuzzer makes up are gone soon, and so are the attempts that were sent to them
    "yarn.nm.liveness-monitor.expiry-interval-ms": "3000",
    "yarn.am.liveness-monitor.expiry-interval-ms": "10000",
    "yarn.resourcemanager.am.max-attempts": "1",
    "yarn.resourcemanager.max-completed-applications": "100",
    # room for what is made up beside what is real
    "yarn.nodemanager.resource.memory-mb": "8192",
    "yarn.nodemanager.resource.cpu-vcores": "32",
    "yarn.scheduler.maximum-allocation-mb": "512",
    "yarn.app.mapreduce.am.resource.mb": "256",
    "mapreduce.map.memory.mb": "256",
    "mapreduce.reduce.memory.mb": "256",
    "mapreduce.input.fileinputformat.split.maxsize": "8192",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "1.0",
}
_COUNT_JOB = """
from yaqd.mapreduce import Job
class Count(Job):
    reduces = 2
    def map(self, key, value):
        for word in value.split():
            yield word, 1
    def reduce(self, key, values):
        yield key, sum(values)
"""
_STAY_JOB = """
import time
from yaqd.mapreduce import Job
class Stay(Job):
    def map(self, key, value):
        time.sleep(100_000)
        yield key, value
"""
_WARNING = re.compile(r"^\S+ \S+ (WARNING|ERROR) ")
_START_TIMEOUT_S = 60.0
#: two, so that reduces have something to fetch over the wire
_NODES = 2
_JOBS_MAX = 10
_KINDS = {"masters": "YARN_AM_RM_TOKEN", "containers": "NMToken", "umbilical": "mapreduce.job"}


@dataclass(slots=True)
class Health:
    """One daemon at one moment."""

    pss_bytes: int
    descriptors: int


class FuzzCluster:
    """Start it, `record`, then `stay`; use as a context manager."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.recorded = folder / "recorded"
        self._cluster = LocalCluster(folder / "c")
        self._live: SubmittedJob | None = None
        #: the ids of the applications that stayed, for a while
        self._stays: list[str] = []

    def __enter__(self) -> "FuzzCluster":
        self.recorded.mkdir(parents=True)
        for name, text in (
            ("count.py", _COUNT_JOB),
            ("stay.py", _STAY_JOB),
            ("in.txt", "the quick brown fox\n" * 2000),
        ):
            (self.folder / name).write_text(text)
        path = os.pathsep.join(map(str, (HERE / "recorder", HERE.parents[1])))
        environment = os.environ | {"PYTHONPATH": path, "YAQ_FUZZ_RECORD": str(self.recorded)}
        settings = [word for key, value in _SETTINGS.items() for word in ("-D", f"{key}={value}")]
        start = ("cluster", "start", "--dir", self._cluster.directory, "--nodes", _NODES, *settings)
        self._yaq(*start, environment=environment)
        self.conf = Configuration.load(self._cluster.conf_dir)
        self.daemons = {
            status.name: identity
            for status in self._cluster.status().daemons
            if status.pid is not None and (identity := ProcessIdentity.of(status.pid)) is not None
        }
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.close()
        self._cluster.stop()

    def _yaq(self, *words: object, environment: dict[str, str] | None = None) -> str:
        environment = dict(environment or os.environ)
        if words[0] != "cluster":
            environment["HADOOP_CONF_DIR"] = str(self._cluster.conf_dir)
        command = [sys.executable, "-m", "yaqd.cli", *map(str, words)]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=120, env=environment, cwd=self.folder, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
        return done.stdout

    # Recording --------------------------------------------------------------------------------------------------------

    def run_job(self, output: str) -> str:
        """A real job from end to end; its application id."""
        out = self.folder / output
        submitted = submit_mapreduce(
            self.conf, str(self.folder / "count.py"), inputs=[str(self.folder / "in.txt")], output=str(out)
        )
        try:
            result = submitted.wait(timeout_s=60)
        finally:
            submitted.close()
        assert result.state == "SUCCEEDED", result.diagnostics
        assert sum(int(line.split("\t")[1]) for p in out.glob("part-*") for line in p.read_text().splitlines()) == 8000
        return str(submitted.application_id)

    def record(self) -> Corpus:
        application = self._recorded_job()
        self._yaq("app", "logs", application)
        self._yaq("app", "status", application)
        self._yaq("app", "list", "--all")
        self._yaq("node", "list")
        self._yaq("queue", "list")
        self._administer()
        container = f"container_{application.removeprefix('application_')}_01_000001"
        self.browse(self.web("rm"), ("info", "metrics", "apps", f"apps/{application}", "nodes"), "/ws/v1/cluster/")
        self.browse(self.web("rm"), (f"cluster/app/{application}", f"proxy/{application}/"), "/")
        logs = f"containers/{container}/logs"
        self.browse(self.web("nm"), ("info", "apps", "containers", logs, f"{logs}/stderr"), "/ws/v1/node/")
        self.browse(
            self.web("nm"), (f"{container}/root", f"{container}/root/stdout?start=-4096"), "/node/containerlogs/"
        )
        self.stay()
        (self.recorded / "stop").touch()
        return Corpus.read(self.recorded)

    def _recorded_job(self) -> str:
        """On a busy machine one container may run the whole of so small a job, and then nothing is fetched."""
        for number in range(_JOBS_MAX):
            application = self.run_job(f"recorded-out-{number}")
            if any(self.recorded.glob("shuffle.*")):
                return application
        raise AssertionError(f"the reduces of {_JOBS_MAX} jobs fetched nothing over the wire")

    def _administer(self) -> None:
        # not updateNodeResource: a node that is made too small for any container is sent away when it comes again
        with self.client("yarn.resourcemanager.admin.address") as client:
            client.call(Administration.refreshQueues, admin.RefreshQueuesRequest())
            client.call(Administration.refreshNodes, admin.RefreshNodesRequest())
            client.call(Administration.getGroupsForUser, admin.GetGroupsForUserRequest(user="root"))
            client.call(Administration.checkForDecommissioningNodes, admin.CheckForDecommissioningNodesRequest())

    @staticmethod
    def browse(address: tuple[str, int], paths: tuple[str, ...], base: str) -> None:
        for path in paths:
            connection = http.client.HTTPConnection(*address, timeout=10)
            connection.request("GET", base + path)
            connection.getresponse().read()
            connection.close()

    # Doors ------------------------------------------------------------------------------------------------------------

    def client(self, key: str) -> BlockingRpcClient:
        return BlockingRpcClient(*self.conf.get_address(key), user="root", timeout_s=30.0, connect_retries=NO_RETRY)

    def web(self, daemon: str, number: int = 1) -> tuple[str, int]:
        if daemon == "rm":
            return self.conf.get_address("yarn.resourcemanager.webapp.address")
        host, _, port = self.ready(f"nodemanager-{number}")["web"].rpartition(":")
        return host, int(port)

    def ready(self, daemon: str) -> dict[str, str]:
        """What the daemon's ready line says."""
        line = (self._cluster.logs_dir / f"{daemon}.out").read_text()
        return dict(word.split("=", 1) for word in line.split() if "=" in word)

    def doors(self) -> dict[str, tuple[str, Door]]:
        """By target: the name of the recorded server, and the way in."""
        found = {
            "client": ("resourcemanager-client-service", self._open_door("yarn.resourcemanager.address")),
            "masters": ("resourcemanager-application-master-service", self._token_door("masters")),
            "containers": ("container-service", self._token_door("containers")),
            "umbilical": ("job-manager", self._token_door("umbilical")),
            "shuffle": ("shuffle", Door("127.0.0.1", int(self.ready("nodemanager-1")["shuffle"]))),
            "nm-web": ("nm-web", Door(*self.web("nm"))),
            "rm-web": ("rm-web", Door(*self.web("rm"))),
            "admin": ("resourcemanager-administration", self._open_door("yarn.resourcemanager.admin.address")),
            "tracker": (
                "resourcemanager-node-tracker",
                self._open_door("yarn.resourcemanager.resource-tracker.address"),
            ),
        }
        return found

    def _open_door(self, key: str) -> Door:
        return Door(*self.conf.get_address(key))

    def _token_door(self, target: str) -> Door:
        assert self._live is not None
        application = self._live.application_id
        attempt, token = self._tokens(application)[_KINDS[target]]
        if target == "masters":
            address = self.conf.get_address("yarn.resourcemanager.scheduler.address")
            return Door(*address, token, attempt, ApplicationMasterProtocol.NAME)
        if target == "containers":
            host, _, port = token.service.rpartition(":")
            return Door(host, int(port), token, attempt, ContainerManagementProtocol.NAME)
        return Door(*self.manager_address(), token, attempt, TaskUmbilicalProtocol.NAME)

    def manager_address(self) -> tuple[str, int]:
        assert self._live is not None
        report = self._live.report()
        return report.host, report.rpc_port

    def _tokens(self, application: ApplicationId) -> dict[str, tuple[str, Token]]:
        """The live application's tokens by kind, those of its last attempt, each with who holds it."""
        number = str(application).removeprefix("application_")
        found: dict[str, tuple[str, Token]] = {}
        for path in self.recorded.glob("tokens.*"):
            for line in path.read_text().splitlines():
                entry = json.loads(line)
                token = Token(
                    bytes.fromhex(entry["identifier"]),
                    bytes.fromhex(entry["password"]),
                    entry["kind"],
                    entry["service"],
                )
                if number in entry["user"] or f"job_{number}".encode() in token.identifier:
                    found[token.kind] = max(found.get(token.kind, ("", token)), (entry["user"], token), key=_holder)
        return found

    # The application that stays ---------------------------------------------------------------------------------------

    @property
    def is_staying(self) -> bool:
        if self._live is None:
            return False
        try:
            return not self._live.report().state.is_final and self._answers()
        except (RpcError, RemoteException):
            return False

    def _answers(self) -> bool:
        host, port = self.manager_address()
        try:
            with BlockingRpcClient(host, port, user="root", timeout_s=10.0, connect_retries=NO_RETRY) as client:
                return client.call(JobClientProtocol.getJobStatus, job.GetJobStatusRequest()).state == "RUNNING"
        except RpcError:
            return False

    def stay(self) -> None:
        """Make sure that an application with running tasks is there, a new one if need be."""
        if self.is_staying:
            return
        if self._live is not None:
            self._live.close()
        self._live = submit_mapreduce(
            self.conf,
            str(self.folder / "stay.py"),
            inputs=[str(self.folder / "in.txt")],
            output=str(self.folder / f"stay-{len(self._stays)}"),
            reduces=1,
        )
        application = self._live.application_id
        self._stays.append(str(application))
        self._until(lambda: len(self._tokens(application)) == len(_KINDS) and self.is_staying, f"{application} to run")

    def settle(self) -> None:
        """Wait until the cluster is the real node and nothing else, after others have been made up."""
        real = sorted(self.ready(f"nodemanager-{number + 1}")["node"] for number in range(_NODES))

        def is_alone() -> bool:
            with self.client("yarn.resourcemanager.address") as client:
                request = service.GetClusterNodesRequest(nodeStates=[common.NS_RUNNING])
                nodes = client.call(ApplicationClientProtocol.getClusterNodes, request).nodeReports
            return sorted(f"{n.nodeId.host}:{n.nodeId.port}" for n in nodes) == real

        self._until(is_alone, f"{real} to be the only nodes")

    @staticmethod
    def _until(condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not condition():
            if time.monotonic() > deadline:
                raise AssertionError(f"waited {_START_TIMEOUT_S:g} s in vain for {what}")
            time.sleep(0.05)

    # Health -----------------------------------------------------------------------------------------------------------

    def health(self) -> dict[str, Health]:
        """Of each daemon; raises AssertionError when one has died."""
        found = {}
        for name, identity in self.daemons.items():
            assert identity.is_alive(), f"{name} has died, see {self._cluster.logs_dir}/{name}.log"
            descriptors = sum(1 for _ in Path(f"/proc/{identity.pid}/fd").iterdir())
            found[name] = Health(proportional_set_bytes(identity) or 0, descriptors)
        return found

    def dump_stacks(self) -> None:
        """Have every daemon write what it is doing into its .out file."""
        for identity in self.daemons.values():
            if identity.is_alive():
                os.kill(identity.pid, signal.SIGUSR1)

    def log_lines(self) -> list[str]:
        """What the daemons logged, of every daemon."""
        return [
            line
            for path in sorted(self._cluster.logs_dir.glob("*manager*.log*"))
            for line in path.read_text(errors="replace").splitlines()
        ]

    def warnings(self) -> list[str]:
        return [line for line in self.log_lines() if _WARNING.search(line)]

    def master_tracebacks(self) -> list[str]:
        """Faults of the job managers that were attacked: what their containers' logs show of them."""
        logs = (self._cluster.directory / "nodes").glob("nm-*/logs/*/*_01_000001/stderr")
        attacked = [path for path in logs if path.parent.parent.name in self._stays]
        return [str(path) for path in attacked if "Traceback" in path.read_text(errors="replace")]


def _holder(held: tuple[str, Token]) -> str:
    return held[0]
