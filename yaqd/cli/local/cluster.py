"""Starting, watching and stopping a local cluster.

Everything lies under one folder: `conf/` (what clients need), `run/` (pid files; the daemons work there), `logs/` (each
daemon's log, and in `.out` what it printed), `nodes/nm-N/` (containers' files and logs), `cluster.json` (what was asked
for, kept for the next start). A lock lets one command at a time work on it; pid files name processes by pid and start
time.
"""

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from yaqd.cli.exits import BAD_INPUT, FAILED, CommandError
from yaqd.cli.local import site
from yaqd.cli.local.file_system import check_file_system
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
from yaqd.cli.local.site import LocalShape

READY_TIMEOUT_S = 60.0
STOP_GRACE_S = 10.0
NODES_MAX = 256
_POLL_S = 0.05
#: running clusters that are named to who gave a folder without one
_NAMED = 3
#: Less free space than this is none: configuration and first log lines need about as much.
_PROBE_BYTES = 256 << 10
_RM = "resourcemanager"
_READY_WITHIN_CHARS = 64 << 10
_READY = re.compile(r"^NodeManager ready node=(\S+)", re.MULTILINE)
_HDFS = re.compile(r"hdfs://(\[[0-9A-Fa-f:]+\]|[\w.-]+)(:[0-9]{1,5})?/?")


@dataclass(frozen=True, slots=True)
class DaemonStatus:
    name: str
    pid: int | None
    is_running: bool
    log: Path
    #: of the daemon and its group, containers of a NodeManager not included
    pss_bytes: int | None = None
    #: a signal has stopped it (SIGSTOP, a debugger): it is there and answers nobody
    is_halted: bool = False

    @property
    def answers(self) -> bool:
        return self.is_running and not self.is_halted


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    daemons: list[DaemonStatus] = field(default_factory=list)
    #: nodes that the ResourceManager counts as running; None when it does not answer
    nodes_running: int | None = None

    @property
    def nodes_ready(self) -> int | None:
        """`nodes_running` without those whose daemon is dead or halted, which the ResourceManager is slow to miss."""
        if self.nodes_running is None:
            return None
        return min(self.nodes_running, sum(daemon.answers for daemon in self.daemons if daemon.name != _RM))

    @property
    def is_running(self) -> bool:
        return bool(self.daemons) and all(daemon.answers for daemon in self.daemons)


def _names(shape: LocalShape) -> list[str]:
    """The daemons' names, ResourceManager first."""
    return [_RM, *(f"{site.NODE_PREFIX}{index}" for index in range(1, shape.nodes + 1))]


class LocalCluster:
    """The cluster of one folder."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory.absolute()
        self.conf_dir = self.directory / "conf"
        self.logs_dir = self.directory / "logs"
        self._run_dir = self.directory / "run"
        self._record = self.directory / "cluster.json"

    # Commands ---------------------------------------------------------------------------------------------------------

    def start(
        self,
        nodes: int | None = None,
        hdfs: str | None = None,
        defines: Mapping[str, str] | None = None,
        *,
        timeout_s: float = READY_TIMEOUT_S,
        note: Callable[[str], None] = lambda text: None,
    ) -> None:
        """Starts the daemons and returns once every node has registered; on any failure, stops what was started.

        What is not given stays as the folder's last start had it, apart from starts that failed. Where some daemons
        run, only the others are started.
        """
        last, shape = self._shape(None, None, {}), self._shape(nodes, hdfs, defines or {})
        check_file_system(shape, timeout_s)
        self._prepare()
        with self._locked():
            deadline = time.monotonic() + timeout_s
            running = [name for name, process in self._recorded() if process.is_alive()]
            if running:
                self._complete(running, last, shape, deadline, note)
                return
            stale = [name for name, _ in self._recorded()]
            if stale:
                note(f"the last run did not end cleanly; cleaning up after {', '.join(stale)}")
                self._clean_up()
            ports = site.free_ports(self._last().get("ports") or [0] * site.rm_port_count())
            before = self._files()
            site.write_conf(self.directory, shape, ports)
            self._remember(shape, ports)
            try:
                self._start_daemons(shape, _names(shape), deadline)
            except BaseException as error:
                self._stop_all(2.0)
                if shape == last:
                    raise
                self._take_back(before, last, ports)
                if not isinstance(error, CommandError):
                    raise
                raise CommandError(f"{error}; the settings of this start are not kept", error.exit_code) from None

    def status(self) -> ClusterStatus:
        self._require()
        daemons = []
        for name, process in self._recorded():
            alive = process.is_alive()
            log = self.logs_dir / f"{name}.log"
            pss = sum(proportional_set_bytes(p) or 0 for p in group_members(process)) if alive else None
            daemons.append(DaemonStatus(name, process.pid, alive, log, pss, is_halted=process.is_halted()))
        has_rm = any(daemon.answers and daemon.name == _RM for daemon in daemons)
        nodes = self._running_nodes() if has_rm else None
        return ClusterStatus(daemons, None if nodes is None else len(nodes))

    def stop(self) -> list[str]:
        """Stops everything and returns the names of the daemons that ran; an empty list when none did."""
        self._require()
        with self._locked():
            return self._stop_all(STOP_GRACE_S)

    # Starting ---------------------------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        """Makes the folder and makes sure that it is ours and can be written."""
        made: list[Path] = []
        probe = self._run_dir / f".probe-{os.getpid()}"  # another command's is another one
        try:
            if not self.directory.exists():
                self.directory.mkdir(parents=True, exist_ok=True)
                made.append(self.directory)
            elif not self._record.exists() and not self._is_begun():
                raise CommandError(f"{self.directory} is not empty and holds no cluster; name an empty folder")
            for folder in (self._run_dir, self.logs_dir):
                if not folder.exists():
                    folder.mkdir(exist_ok=True)
                    made.append(folder)
            probe.write_bytes(b"\0" * _PROBE_BYTES)
            probe.unlink()
        except OSError as error:
            with suppress(OSError):
                probe.unlink(missing_ok=True)
                for folder in reversed(made):
                    folder.rmdir()
            raise CommandError(
                f"{self.directory}: cannot hold a cluster: {error.strerror}; name a folder that can be written"
            ) from error

    def _is_begun(self) -> bool:
        """Whether there is nothing in the folder but what a start makes first. CommandError: one is at work there."""
        if not any(self.directory.iterdir()):
            return True
        if (self._run_dir / "lock").exists():
            with self._locked():
                pass
        begun = {self._run_dir: ("lock", ".probe-"), self.logs_dir: ()}
        return all(
            place in begun and all(file.name.startswith(begun[place]) for file in place.iterdir())
            for place in self.directory.iterdir()
        )

    def _shape(self, nodes: int | None, hdfs: str | None, defines: Mapping[str, str]) -> LocalShape:
        last = self._last()
        count = nodes if nodes is not None else int(last.get("nodes", 1))
        if not 1 <= count <= NODES_MAX:
            raise CommandError(f"--nodes {count}: give a number from 1 to {NODES_MAX}")
        if hdfs and not _HDFS.fullmatch(hdfs):
            raise CommandError(f"--hdfs {hdfs}: not the address of an HDFS; write hdfs://host:port")
        return LocalShape(count, hdfs or last.get("hdfs"), {**last.get("defines", {}), **defines})

    def _last(self) -> dict[str, Any]:
        try:
            found = json.loads(self._record.read_text())
            return found if isinstance(found, dict) else {}
        except (OSError, ValueError):
            return {}

    def _remember(self, shape: LocalShape, ports: list[int]) -> None:
        record = {"nodes": shape.nodes, "hdfs": shape.hdfs, "defines": dict(shape.defines), "ports": ports}
        temporary = self._record.with_suffix(".tmp")
        temporary.write_text(json.dumps(record, indent=2) + "\n")
        temporary.replace(self._record)

    def _files(self) -> dict[Path, bytes]:
        """The configuration and the record, as they are."""
        return {file: file.read_bytes() for file in (*self.conf_dir.glob("*.xml"), self._record) if file.exists()}

    def _take_back(self, before: Mapping[Path, bytes], last: LocalShape, ports: list[int]) -> None:
        """A start has failed: its settings, which may be why, are gone from the files."""
        for file in self._files():
            if file not in before:
                file.unlink()
            else:
                file.write_bytes(before[file])
        if self._record not in before:
            site.write_conf(self.directory, last, ports)
            self._remember(last, ports)

    def _complete(
        self, running: list[str], last: LocalShape, wanted: LocalShape, deadline: float, note: Callable[[str], None]
    ) -> None:
        """Starts the daemons that died under the configuration that the others run with; on failure, these go on."""
        missing = [name for name in _names(last) if name not in running]
        if not missing or wanted != last:
            others = f"; {', '.join(missing)} died and can be started with the settings of the last start" * bool(
                missing
            )
            raise CommandError(
                f"a cluster is already running in {self.directory} ({', '.join(running)}){others}; "
                f"stop it first: yaq cluster stop --dir {self.directory}"
            )
        note(f"{', '.join(running)} still running; starting {', '.join(missing)}")
        dead = [process for name, process in self._recorded() if name in missing]
        self._kill(left_by(dead, self._run_dir, self.directory / "nodes"))
        self._kill(
            processes_working_under(*(site.node_folder(self.directory, name) for name in missing if name != _RM))
        )
        try:
            self._start_daemons(last, missing, deadline)
        except BaseException:
            end_all([process for name, process in self._recorded() if name in missing], 2.0)
            raise

    def _start_daemons(self, shape: LocalShape, names: list[str], deadline: float) -> None:
        """All at once: a NodeManager's own start takes longer than the ResourceManager's, and it waits for that one."""
        started = []
        for name in names:
            words = ["rm", "start"]
            if name != _RM:
                settings = site.node_settings(self.directory, name, shape.defines)
                own = [word for key, value in settings.items() for word in ("-D", f"{key}={value}")]
                words = ["nm", "start", "--name", name, *own]
            started.append((name, self._spawn(name, words)))
        while not self._are_registered(_names(shape)[1:]):
            for name, process in started:
                code = process.poll()
                if code is not None:
                    raise CommandError(self._why_ended(name, code), BAD_INPUT if code == BAD_INPUT else FAILED)
            if time.monotonic() > deadline:
                raise CommandError(f"{self._why_late()}; see {self.logs_dir}", FAILED)
            time.sleep(_POLL_S)

    def _are_registered(self, names: list[str]) -> bool:
        """By address: the ResourceManager still counts nodes that died a moment ago."""
        running = self._running_nodes()
        if running is None:
            return False
        for name in names:
            try:
                with open(self.logs_dir / f"{name}.out", errors="replace") as printed:
                    line = _READY.search(printed.read(_READY_WITHIN_CHARS))
            except FileNotFoundError:
                continue  # of one that ran before, and somebody cleaned up
            if line is None or line[1] not in running:
                return False
        return True

    def _spawn(self, name: str, words: list[str]) -> "subprocess.Popen[bytes]":
        """Starts a daemon in a session of its own; what it prints goes to `logs/<name>.out`."""
        # -P: a folder named like a package in the working folder must not be imported.
        command = [sys.executable, "-P", "-m", "yaqd.cli", *words, "--conf", str(self.conf_dir)]
        environment = os.environ | {"HADOOP_CONF_DIR": str(self.conf_dir)}
        with open(self.logs_dir / f"{name}.out", "wb") as printed:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=subprocess.STDOUT,
                cwd=self._run_dir,
                env=environment,
                start_new_session=True,
            )
        identity = ProcessIdentity.of(process.pid)
        if identity is not None:
            identity.write(self._run_dir / f"{name}.pid")
        return process

    def _why_ended(self, name: str, code: int) -> str:
        printed = (self.logs_dir / f"{name}.out").read_text(errors="replace").strip().splitlines()
        reason = printed[-1].removeprefix("yaq: ") if printed else "it printed nothing"
        return f"{name} ended with code {code}: {reason} (see {self.logs_dir}/{name}.log)"

    def _why_late(self) -> str:
        from yaqd.cli.local.probe import unhealthy_nodes

        return "; ".join(unhealthy_nodes(self.conf_dir)) or "the nodes did not register in time"

    def _running_nodes(self) -> set[str] | None:
        """Addresses of the nodes that the ResourceManager counts as running; None when it does not answer yet."""
        from yaqd.cli.local.probe import running_nodes

        return running_nodes(self.conf_dir)

    # Stopping ---------------------------------------------------------------------------------------------------------

    def _stop_all(self, grace_s: float) -> list[str]:
        recorded = self._recorded()
        ran = [name for name, process in recorded if process.is_alive()]
        end_all([process for _, process in recorded], grace_s)
        self._clean_up()
        return ran

    def _clean_up(self) -> None:
        """Ends what killed daemons left behind and removes the pid files."""
        self._kill(processes_working_under(self._run_dir, self.directory / "nodes"))
        for file in self._run_dir.glob("*.pid"):
            file.unlink(missing_ok=True)

    def _kill(self, processes: list[ProcessIdentity]) -> None:
        for process in processes:
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
        wait_for_end(processes, 2.0)

    def remove(self) -> None:
        """Deletes the folder of a stopped cluster."""
        shutil.rmtree(self.directory, ignore_errors=True)

    # The folder -------------------------------------------------------------------------------------------------------

    def _require(self) -> None:
        if not self._record.exists():
            others = ", ".join(str(found) for found in running_clusters()[:_NAMED])
            here = (
                f"; those of {others} run here" if others else f"; yaq cluster start --dir {self.directory} makes one"
            )
            raise CommandError(f"{self.directory} holds no cluster, give the folder of `yaq cluster start`{here}")

    def _recorded(self) -> list[tuple[str, ProcessIdentity]]:
        """The daemons of the pid files, ResourceManager first; a damaged file stands for a process that never was."""
        files = sorted(self._run_dir.glob("*.pid"), key=lambda file: (file.stem != _RM, len(file.stem), file.stem))
        return [(file.stem, ProcessIdentity.read(file) or ProcessIdentity(0, -1)) for file in files]

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with open(self._run_dir / "lock", "a") as lock:  # may be somebody else's file
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                command = "command is at work on" if self._record.exists() else "start is under way in"
                raise CommandError(f"another yaq cluster {command} {self.directory}; wait for it") from None
            yield
