"""Log aggregation of this node: follows the lives of containers and uploads when it is time.

Runs on the event loop; what touches files runs in threads of its own, so that a slow HDFS holds up nothing else. An
application's work is done in order, under its lock: folders when its first container runs, a cycle each interval while
it runs (if it asked for that), the last one when all is over. A last upload that fails is tried again with growing
pauses; if it fails for good the local files stay for as long as they would without aggregation.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from nm.container import Container
from nm.deletion import Deletion
from nm.log_aggregation.child import upload_as_user
from nm.log_aggregation.policies import BadPolicy, ContainerEnd, ContainerLogPolicy, parse_policy
from nm.log_aggregation.reports import LogReports
from nm.log_aggregation.selection import FileIdentity, LogSelection, select
from nm.log_aggregation.settings import LogAggregationSettings
from nm.log_aggregation.upload import Upload, make_root
from yaqd.config import Configuration
from yaqd.model import ApplicationId, ContainerId, NodeId
from yaqd.proto import yarn_common_pb2 as common
from yaqd.storage import StorageError
from yaqd.storage.paths import hadoop_user

log = logging.getLogger(__name__)

_RETRY_DELAYS_S: Final = (1.0, 4.0, 15.0)


@dataclass(slots=True, eq=False)
class _Application:
    id: ApplicationId
    user: str
    acls: dict[str, str]
    selection: LogSelection
    policy: ContainerLogPolicy
    #: None while the container is not over; uploaded ones are forgotten
    containers: dict[ContainerId, ContainerEnd | None] = field(default_factory=dict)
    #: of containers that still run, in rolling mode
    uploaded: set[FileIdentity] = field(default_factory=set)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    rolling: "asyncio.Task[None] | None" = None


class LogAggregation:
    def __init__(
        self,
        conf: Configuration,
        settings: LogAggregationSettings,
        *,
        log_dirs: tuple[Path, ...],
        node_id: Callable[[], NodeId],
        deletion: Deletion,
        notify: Callable[[], None],
        retry_delays_s: tuple[float, ...] = _RETRY_DELAYS_S,
    ) -> None:
        """`notify` hears of new reports for the heartbeat."""
        self._conf = conf
        self._settings = settings
        self._log_dirs = log_dirs
        self._node_id = node_id
        self._deletion = deletion
        self._notify = notify
        self._retry_delays_s = retry_delays_s
        self._daemon_user = hadoop_user()
        self._is_local = settings.remote.root.startswith("file:")
        self._threads = ThreadPoolExecutor(settings.threads, thread_name_prefix="logs")
        self._tasks: set[asyncio.Task[None]] = set()
        self._applications: dict[ApplicationId, _Application] = {}
        self.reports = LogReports()

    def start(self) -> None:
        """Makes the remote root in the background: a file system that is away must not keep the node from starting."""
        self._spawn(self._make_root())

    async def stop(self, deadline_s: float) -> None:
        """Gives uploads under way so long; the logs that remain stay on the node's disks."""
        for app in self._applications.values():
            if app.rolling is not None:
                app.rolling.cancel()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=deadline_s)
            for task in late:
                task.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)

    # What happens on the node -----------------------------------------------------------------------------------------

    def container_changed(self, container: Container) -> None:
        """A container runs, or is done."""
        app = self._applications.get(container.id.application_id)
        if app is None:
            app = self._begin(container)
        grant = container.grant
        app.containers[container.id] = (
            ContainerEnd(container.id, grant.container_type, container.exit_status) if container.is_done else None
        )

    def application_ended(self, application_id: ApplicationId) -> bool:
        """All its containers are done and it is over. Whether its local logs are taken care of here."""
        app = self._applications.pop(application_id, None)
        if app is None:
            return False
        if app.rolling is not None:
            app.rolling.cancel()
        self._spawn(self._finish(app))
        return True

    def _begin(self, container: Container) -> _Application:
        context = container.grant.log_aggregation
        app = _Application(
            id=container.id.application_id,
            user=container.grant.user,
            acls=dict(container.launch.acls),
            selection=LogSelection.parse(context),
            policy=self._policy(context, container.id.application_id),
        )
        self._applications[app.id] = app
        self._spawn(self._prepare(app))
        if self._settings.roll_interval_s is not None and app.selection.rolled is not None:
            app.rolling = self._spawn(self._roll(app, self._settings.roll_interval_s))
        return app

    def _policy(self, context: common.LogAggregationContext | None, app_id: ApplicationId) -> ContainerLogPolicy:
        if context is None or not context.log_aggregation_policy_class_name:
            return self._settings.policy
        try:
            return parse_policy(context.log_aggregation_policy_class_name, context.log_aggregation_policy_parameters)
        except BadPolicy as error:
            log.warning("%s: %s; the node's own is used", app_id, error)
            return self._settings.policy

    # Work -------------------------------------------------------------------------------------------------------------

    async def _make_root(self) -> None:
        try:
            warning = await self._in_thread(partial(make_root, self._conf, self._settings.remote, self._settings.group))
        except StorageError as error:
            warning = str(error)
        if warning:
            log.warning("log aggregation: %s", warning)

    async def _prepare(self, app: _Application) -> None:
        """The folders, before there is anything to put into them: what is wrong with them is known early."""
        async with app.lock:
            try:
                await self._upload(app, [])
            except StorageError as error:
                log.warning("%s: no folder for its logs, tried again at its end: %s", app.id, error)

    async def _roll(self, app: _Application, interval_s: float) -> None:
        while True:
            await asyncio.sleep(interval_s)
            try:
                await self._cycle(app)
            except StorageError as error:
                log.warning("%s: its logs are not uploaded, tried again: %s", app.id, error)
                self._report(app, common.LOG_RUNNING_WITH_FAILURE, str(error))

    async def _finish(self, app: _Application) -> None:
        problem = ""
        for delay_s in (*self._retry_delays_s, None):
            try:
                await self._cycle(app)
                problem = ""
                break
            except StorageError as error:
                problem = str(error)
                log.warning("%s: its logs are not uploaded: %s", app.id, error)
                if delay_s is not None:
                    await asyncio.sleep(delay_s)
        if problem:
            self._report(app, common.LOG_FAILED, problem)
        else:
            self._report(app, common.LOG_SUCCEEDED)
        if problem or not self._settings.deletes_local:
            self._deletion.logs_ended(app.id)
        else:
            for root in self._log_dirs:
                self._deletion.delete(root / str(app.id))

    async def _cycle(self, app: _Application) -> None:
        """Uploads what is due of all containers. Raises StorageError; then nothing counts as uploaded."""
        async with app.lock:
            ended = [c for c, end in app.containers.items() if end is not None]
            kept = [(c, end is not None) for c, end in sorted(app.containers.items()) if end is None or app.policy(end)]
            files: list[FileIdentity] = await self._in_thread(
                partial(select, self._log_dirs, kept, app.selection, frozenset(app.uploaded))
            )
            await self._upload(app, files)
            app.uploaded.update(file for file in files if app.containers.get(file.container) is None)
            self._forget(app, ended)
        text = f"{len(files)} log files of {len({f.container for f in files})} containers uploaded"
        log.info("%s: %s", app.id, text)
        self._report(app, common.LOG_RUNNING, f"{text} by {self._node_id()}")

    def _forget(self, app: _Application, ended: list[ContainerId]) -> None:
        """What has ended is uploaded: while the application goes on, its local files go."""
        gone = frozenset(ended)
        for container_id in ended:
            del app.containers[container_id]
            if app.id in self._applications and self._settings.deletes_local:
                for root in self._log_dirs:
                    self._deletion.delete(root / str(app.id) / str(container_id))
        app.uploaded = {file for file in app.uploaded if file.container not in gone}

    async def _upload(self, app: _Application, files: list[FileIdentity]) -> None:
        settings = self._settings
        now_ms = int(time.time() * 1000)
        work = Upload(
            user=app.user,
            application=str(app.id),
            node=str(self._node_id()),
            compression=settings.compression,
            acls=app.acls,
            log_dirs=[str(path) for path in self._log_dirs],
            files=[(str(file.container), file.name) for file in files],
            time_ms=now_ms if settings.roll_interval_s is not None else None,
            now_ms=now_ms,
            files_max=settings.files_per_app_max,
        )
        await self._in_thread(
            partial(
                upload_as_user,
                work,
                self._conf,
                is_local=self._is_local,
                daemon_user=self._daemon_user,
                timeout_s=settings.upload_timeout_s,
            )
        )

    def _report(self, app: _Application, status: "common.LogAggregationStatus", diagnostics: str = "") -> None:
        self.reports.add(app.id, status, diagnostics)
        self._notify()

    async def _in_thread(self, work: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._task_done)
        return task

    def _task_done(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("log aggregation failed", exc_info=task.exception())
