"""What starts a container's process: an interface that names the user to run as, and the plain executor.

The default executor runs everything as the NodeManager's own user, as Hadoop's DefaultContainerExecutor does; one that
changes the user fits behind the same interface.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from nm.resources.groups import ContainerGroup, ContainerGroups
from nm.resources.processes import ContainerProcess, mark_for
from nm.warm.client import ForkerClient, ForkerUnavailable, StartRequest
from yaqd.model import ContainerId


@dataclass(frozen=True, slots=True)
class WarmEntry:
    """A function of the job manager that the prepared process calls instead of running the script."""

    #: `module:function`
    entry: str
    arguments: tuple[str, ...]
    #: evaluated as the script's shell would have
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """Everything an executor needs to start one container."""

    container_id: str
    #: the user whose container it is and, where the executor can, as whom it runs
    run_as_user: str
    work_dir: Path
    log_dir: Path
    #: holds its number from its first moments on
    pid_file: Path
    script: Path
    is_master: bool
    #: what the script's shell starts with
    environment: Mapping[str, str] = field(default_factory=dict)
    #: None runs the script
    warm: WarmEntry | None = None


#: of a script that moves itself into its control group first; what follows is as if bash had been given the script
_IN_GROUP = ("/bin/bash", "-c", '{ echo $$ >"$1"; } 2>/dev/null; shift; . "$0"')
#: a fresh interpreter that imports the same libraries takes about as long
_LOADING_TIMEOUT_S = 2.0


class LaunchFailed(Exception):
    """The process could not be started; the text is for the container's diagnostics."""


class Executor(Protocol):
    async def launch(self, spec: ProcessSpec) -> ContainerProcess:
        """Returns when the process exists and leads a group of its own. Raises LaunchFailed."""
        ...


class DefaultExecutor:
    """Runs containers as the NodeManager's user, Python entries by the prepared forker, scripts by the bare one."""

    def __init__(
        self,
        bare: ForkerClient,
        prepared: ForkerClient | None,
        *,
        groups: ContainerGroups | None,
        batch_class: bool,
        kill_delay_s: float,
    ) -> None:
        """`batch_class`: all but masters run in the kernel's class for batch work, where a process that wakes up does
        not interrupt the others: fewer switches between busy tasks, and quicker answers from masters and daemons.
        `kill_delay_s`: what is asked to end is killed so long later."""
        self._bare = bare
        self._groups = groups
        self._prepared = prepared
        self._batch_class = batch_class
        self._kill_delay_s = kill_delay_s
        #: all processes that were, until somebody takes those out that are over
        self.started: set[ContainerProcess] = set()

    async def launch(self, spec: ProcessSpec) -> ContainerProcess:
        prepared = self._prepared
        is_batch = self._batch_class and not spec.is_master
        if spec.warm is not None and prepared is not None and (prepared.is_ready or prepared.is_loading):
            try:
                await prepared.ready(_LOADING_TIMEOUT_S)
                group = self._group(spec)
                return await self._start(prepared, spec, _warm_request(spec, spec.warm, group, is_batch), group)
            except ForkerUnavailable:
                pass  # it was not asked, so the script may run instead
        try:
            group = self._group(spec)
            return await self._start(self._bare, spec, _script_request(spec, group, is_batch), group)
        except ForkerUnavailable as error:
            raise LaunchFailed(str(error)) from None

    def _group(self, spec: ProcessSpec) -> ContainerGroup | None:
        if self._groups is None:
            return None
        # a master's is nobody's: what bounds the application must not bound it
        application = "" if spec.is_master else str(ContainerId.parse(spec.container_id).application_id)
        return self._groups.group(spec.container_id, application)

    async def _start(
        self, forker: ForkerClient, spec: ProcessSpec, request: StartRequest, group: ContainerGroup | None
    ) -> ContainerProcess:
        process: ContainerProcess | None = None
        try:
            pid = await forker.start_process(request)
            is_warm = request.entry is not None
            process = ContainerProcess(
                pid,
                forker.reap,
                request.mark,
                container=spec.container_id,
                group=group,
                kill_delay_s=self._kill_delay_s,
                is_warm=is_warm,
            )
            self.started.add(process)
            return process
        except OSError as error:
            raise LaunchFailed(str(error)) from error
        finally:
            if process is None and group is not None:
                await group.remove()


def _warm_request(spec: ProcessSpec, warm: WarmEntry, group: ContainerGroup | None, is_batch: bool) -> StartRequest:
    return StartRequest(
        entry=warm.entry,
        arguments=warm.arguments,
        environment=warm.environment,
        work_dir=spec.work_dir,
        stdout=spec.log_dir / "stdout",
        stderr=spec.log_dir / "stderr",
        pid_file=spec.pid_file,
        mark=mark_for(spec.pid_file),
        group="" if group is None else str(group.folder),
        is_batch=is_batch,
    )


def _script_request(spec: ProcessSpec, group: ContainerGroup | None, is_batch: bool) -> StartRequest:
    command: tuple[str, ...] = ("/bin/bash", str(spec.script))
    if group is not None:
        command = (*_IN_GROUP, str(spec.script), str(group.folder / "cgroup.procs"))
    return StartRequest(
        entry=None,
        arguments=command,
        environment=spec.environment,
        work_dir=spec.work_dir,
        stdout=spec.log_dir / "prelaunch.out",
        stderr=spec.log_dir / "prelaunch.err",
        pid_file=spec.pid_file,
        mark=mark_for(spec.pid_file),
        group="" if group is None else str(group.folder),
        is_batch=is_batch,
    )
