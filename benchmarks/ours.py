"""Our own cluster as a benchmark's side: started, used and stopped through the `yaq` command, as a user would."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from .stock.conf import NodeShape

_COMMAND_TIMEOUT_S = 600.0
#: what a cluster of ours on HDFS does beyond the defaults of a stock one, whose nodes keep their logs
AS_STOCK = {"yarn.log-aggregation-enable": "false"}


class OursFailed(Exception):
    """A `yaq` command failed; the message carries its output."""


@dataclass(frozen=True, slots=True)
class YaqRun:
    """One `yaq` command: its output and wall time."""

    stdout: str
    stderr: str
    seconds: float


def yaq_program() -> str:
    """The `yaq` beside this interpreter, else the one on PATH."""
    beside = Path(sys.executable).parent / "yaq"
    found = str(beside) if beside.exists() else shutil.which("yaq")
    if found is None:
        raise OursFailed("no yaq command here: install the project first (scripts/setup.sh)")
    return found


class OurCluster:
    """One ResourceManager and some NodeManagers under one folder."""

    def __init__(
        self,
        directory: Path,
        *,
        hdfs: str | None = None,
        nodes: int = 2,
        shape: NodeShape = NodeShape(),
        site: Mapping[str, object] = {},
        environment: Mapping[str, str] = {},
    ) -> None:
        """`site` becomes `-D` settings; `environment` is added to that of the daemons and commands."""
        self.directory = directory.absolute()
        self.conf_dir = self.directory / "conf"
        self._hdfs = hdfs
        self._nodes = nodes
        self._environment = {**os.environ, "HADOOP_CONF_DIR": str(self.conf_dir), **environment}
        self._site = {
            "yarn.nodemanager.resource.memory-mb": shape.memory_mb,
            "yarn.nodemanager.resource.cpu-vcores": shape.vcores,
            "yarn.scheduler.minimum-allocation-mb": 128,
        } | dict(site)

    def __enter__(self) -> Self:
        args = ["cluster", "start", "--dir", str(self.directory), "--nodes", str(self._nodes)]
        if self._hdfs is not None:
            args += ["--hdfs", self._hdfs]
        for key, value in self._site.items():
            args += ["-D", f"{key}={value}"]
        try:
            self.yaq(*args)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def yaq(self, *args: str) -> YaqRun:
        """Runs one `yaq` command against this cluster; raises with its output where it fails."""
        return _checked(args, self._environment)

    def pids(self) -> list[int]:
        """The daemons' process ids."""
        status = json.loads(self.yaq("cluster", "status", "--dir", str(self.directory), "--json").stdout)
        return [daemon["pid"] for daemon in status["daemons"]]

    def _stop(self) -> None:
        if self.directory.exists():
            _timed([yaq_program(), "cluster", "stop", "--dir", str(self.directory)], self._environment)


def run_yaq(conf_dir: Path, *args: str) -> YaqRun:
    """Runs one `yaq` command against whichever cluster `conf_dir` describes; raises with its output where it fails."""
    return _checked(args, {**os.environ, "HADOOP_CONF_DIR": str(conf_dir)})


def _checked(args: Sequence[str], environment: Mapping[str, str]) -> YaqRun:
    done, seconds = _timed([yaq_program(), *args], environment)
    if done.returncode != 0:
        said = (done.stdout + done.stderr)[-4000:]
        raise OursFailed(f"yaq {' '.join(args)} exited with {done.returncode}\n{said}")
    return YaqRun(done.stdout, done.stderr, seconds)


def _timed(command: Sequence[str], environment: Mapping[str, str]) -> tuple[subprocess.CompletedProcess[str], float]:
    started = time.perf_counter()
    done = subprocess.run(
        command,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_COMMAND_TIMEOUT_S,
        check=False,
    )
    return done, time.perf_counter() - started
