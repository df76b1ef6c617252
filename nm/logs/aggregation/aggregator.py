"""Log aggregation of this node: follows the lives of containers and uploads when it is time.

Runs on the event loop; what touches files runs in threads of its own, so that a slow HDFS holds up nothing else. An
application's work is done in order, under its lock: folders when its first container runs, a cycle each interval while
it runs (if it asked for that), the last one when all is over. A last upload that fails is tried again with growing
pauses, for as long as the ResourceManager waits for it; if it fails for good the local files stay for as long as they
would without aggregation. The next start of this node tries again.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final
from weakref import WeakValueDictionary

from nm.containers.container import Container
from nm.logs.aggregation.policies import BadPolicy, ContainerEnd, ContainerLogPolicy, parse_policy
from nm.logs.aggregation.records import LogRecord, LogRecords
from nm.logs.aggregation.reports import LogReports
from nm.logs.aggregation.selection import FileIdentity, LogSelection, select
from nm.logs.aggregation.settings import LogAggregationSettings
from nm.logs.aggregation.upload import Upload
from nm.logs.aggregation.uploaders import Uploaders
from nm.logs.files import LogFile
from nm.resources.deletion import Deletion
from yaqd.config import Configuration
from yaqd.ipc.tasks import TaskSet
from yaqd.model import ApplicationId, ContainerId, ContainerType, ExitStatus, NodeId
from yaqd.proto import yarn_common_pb2 as common
from yaqd.storage import StorageError
from yaqd.storage.paths import hadoop_user

log = logging.getLogger(__name__)

_FIRST_DELAY_S: Final = 1.0
_DELAY_S_MAX: Final = 60.0


@dataclass(slots=True, eq=False)
class _Application:
    record: LogRecord
    selection: LogSelection
    policy: ContainerLogPolicy
    lock: asyncio.Lock
    #: None while the container is not over; uploaded ones are forgotten
    containers: dict[ContainerId, ContainerEnd | None] = field(default_factory=dict)
    #: of containers that still run, in rolling mode
    uploaded: set[FileIdentity] = field(default_factory=set)
    #: its cycles end; one under way is done first, for what it uploads is uploaded
    is_over: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def id(self) -> ApplicationId:
        return self.record.application


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
        uploaders: Uploaders | None = None,
    ) -> None:
        """`notify` hears of new reports for the heartbeat."""
        self._settings = settings
        self._log_dirs = log_dirs
        self._node_id = node_id
        self._deletion = deletion
        self._notify = notify
        self._uploaders = uploaders or Uploaders(
            conf,
            is_local=settings.remote.root.startswith("file:"),
            daemon_user=hadoop_user(),
            timeout_s=settings.upload_timeout_s,
        )
        self._records = LogRecords(log_dirs)
        #: what the file system for the logs may hold up
        self._threads = ThreadPoolExecutor(settings.threads, thread_name_prefix="logs")
        #: what touches this node's disks only
        self._disk = ThreadPoolExecutor(1, thread_name_prefix="log-records")
        self._tasks = TaskSet(lambda error: log.error("log aggregation failed", exc_info=error))
        self._applications: dict[ApplicationId, _Application] = {}
        #: lives of each application that are not uploaded yet: this one's, and a former one's
        self._unfinished: Counter[ApplicationId] = Counter()
        #: an application's lives write under the same names
        self._locks: WeakValueDictionary[ApplicationId, asyncio.Lock] = WeakValueDictionary()
        self._has_root = False
        self.reports = LogReports()

    def start(self) -> None:
        """Makes the root folder in the background: a file system that is away must not keep the node from starting."""
        self._tasks.start(self._make_root())

    async def leftovers(self) -> list[LogRecord]:
        """Returns what a former life of this node has not uploaded; `resume` uploads it."""
        return await asyncio.get_running_loop().run_in_executor(self._disk, self._records.load)

    def resume(self, records: Sequence[LogRecord]) -> None:
        for record in records:
            self._tasks.start(self._resume(record))

    async def stop(self, deadline_s: float) -> None:
        """Gives uploads so long; what is not done then is done at the next start of this node."""
        for application_id in list(self._applications):
            self.application_ended(application_id)
        await self._tasks.wait(deadline_s)
        self._tasks.cancel()
        self._uploaders.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._disk.shutdown(wait=False, cancel_futures=True)

    # What happens on the node -----------------------------------------------------------------------------------------

    def container_changed(self, container: Container, acls: Mapping[str, str]) -> None:
        """Notes that a container runs, or is done. `acls` are its application's."""
        app = self._applications.get(container.id.application_id)
        if app is None:
            app = self._begin(container, acls)
        grant = container.grant
        app.containers[container.id] = (
            ContainerEnd(container.id, grant.container_type, container.exit_status) if container.is_done else None
        )

    def application_ended(self, application_id: ApplicationId) -> bool:
        """Notes that an application is over and its containers done.

        Returns whether its local logs are taken care of here.
        """
        app = self._applications.pop(application_id, None)
        if app is None:
            return False
        app.is_over.set()
        self._tasks.start(self._finish(app))
        return True

    def uploaded(self, container_id: ContainerId) -> list[LogFile]:
        """Lists what was uploaded already of a running container, by name.

        A name stands there twice if two such files were uploaded.
        """
        app = self._applications.get(container_id.application_id)
        files = [file for file in app.uploaded if file.container == container_id] if app is not None else []
        return [LogFile(f.name, f.size_bytes, f.modified) for f in sorted(files, key=lambda f: (f.name, f.modified))]

    def _begin(self, container: Container, acls: Mapping[str, str]) -> _Application:
        grant = container.grant
        record = LogRecord(
            application=container.id.application_id,
            user=grant.user,
            node=str(self._node_id()),
            acls=dict(acls),
            context=grant.log_aggregation,
        )
        app = self._application(record)
        self._applications[app.id] = app
        self._tasks.start(self._prepare(app))
        if self._settings.roll_interval_s is not None and app.selection.rolled is not None:
            self._tasks.start(self._roll(app, self._settings.roll_interval_s))
        return app

    def _application(self, record: LogRecord) -> _Application:
        self._unfinished[record.application] += 1
        return _Application(
            record=record,
            selection=LogSelection.parse(record.context),
            policy=self._policy(record.context, record.application),
            lock=self._locks.setdefault(record.application, asyncio.Lock()),
        )

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
            await self._need_root()
        except StorageError as error:
            log.warning("log aggregation: %s", error)

    async def _need_root(self) -> None:
        """Whoever wrote below a root that is not there would make it their own."""
        if self._has_root:
            return
        warning = await self._in_thread(partial(self._uploaders.make_root, self._settings.group))
        if warning and not self._has_root:
            log.warning("log aggregation: %s", warning)
        self._has_root = True

    async def _prepare(self, app: _Application) -> None:
        """The folders, before there is anything to put into them: what is wrong with them is known early."""
        await self._on_disk(partial(self._records.save, app.record))
        async with app.lock:
            try:
                await self._upload(app, [])
            except StorageError as error:
                log.warning("%s: no folder for its logs, tried again at its end: %s", app.id, error)

    async def _resume(self, record: LogRecord) -> None:
        """How its containers ended is not known any more: they count as failed, so that every policy keeps them."""
        containers: list[ContainerId] = await self._on_disk(partial(self._records.containers, record.application))
        running = self._applications.get(record.application)
        app = self._application(record)
        for container_id in containers:
            if running is None or container_id not in running.containers:
                is_master = container_id.sequence == 1
                kind = ContainerType.APPLICATION_MASTER if is_master else ContainerType.TASK
                app.containers[container_id] = ContainerEnd(container_id, kind, ExitStatus.ABORTED)
        if app.containers:
            log.info("%s: logs of %d containers are left of a former life", app.id, len(app.containers))
            await self._finish(app)
        else:
            await self._over(app)

    async def _roll(self, app: _Application, interval_s: float) -> None:
        while True:
            try:
                async with asyncio.timeout(interval_s):
                    await app.is_over.wait()
                return
            except TimeoutError:
                pass
            try:
                await self._cycle(app)
            except StorageError as error:
                log.warning("%s: its logs are not uploaded, tried again: %s", app.id, error)
                self._report(app, common.LOG_RUNNING_WITH_FAILURE, str(error))

    async def _finish(self, app: _Application) -> None:
        problem = ""
        for delay_s in (*_delays(self._settings.retry_s), None):
            try:
                await self._cycle(app)
                problem = ""
                break
            except StorageError as error:
                problem = str(error)
                log.warning("%s: its logs are not uploaded: %s", app.id, error)
                if delay_s is not None:
                    self._report(app, common.LOG_RUNNING_WITH_FAILURE, problem)
                    await asyncio.sleep(delay_s)
        if problem:
            self._report(app, common.LOG_FAILED, problem)
            self._deletion.logs_ended(app.id)
        else:
            self._report(app, common.LOG_SUCCEEDED)
            await self._over(app)

    async def _over(self, app: _Application) -> None:
        """Nothing of it is left to upload."""
        self._unfinished[app.id] -= 1
        if self._unfinished[app.id] <= 0:
            del self._unfinished[app.id]
            await self._on_disk(partial(self._records.forget, app.id))
            if not self._settings.deletes_local:
                self._deletion.logs_ended(app.id)

    async def _cycle(self, app: _Application) -> None:
        """Uploads what is due of all containers. Raises StorageError; then nothing counts as uploaded."""
        async with app.lock:
            ended = [c for c, end in app.containers.items() if end is not None]
            kept = [(c, end is not None) for c, end in sorted(app.containers.items()) if end is None or app.policy(end)]
            files: list[FileIdentity] = await self._on_disk(
                partial(select, self._log_dirs, kept, app.selection, frozenset(app.uploaded))
            )
            await self._upload(app, files)
            # of those that ran when it began: one that has ended meanwhile has its other files still to come
            rolled = [file for file in files if file.container not in ended]
            app.uploaded.update(rolled)
            if self._settings.deletes_local:
                # what a container has closed must not fill the disk for as long as it runs
                self._deletion.log_files_uploaded([(file.container, file.name, file.modified) for file in rolled])
            self._forget(app, ended)
        text = f"{len(files)} log files of {len({f.container for f in files})} containers uploaded"
        log.info("%s: %s", app.id, text)
        self._report(app, common.LOG_RUNNING, f"{text} by {app.record.node}")

    def _forget(self, app: _Application, ended: list[ContainerId]) -> None:
        """What has ended is uploaded, or nobody wants it: its local files go."""
        for container_id in ended:
            del app.containers[container_id]
        if self._settings.deletes_local:
            self._deletion.logs_uploaded(
                ended, is_all=self._unfinished[app.id] <= 1 and app.id not in self._applications
            )
        gone = frozenset(ended)
        app.uploaded = {file for file in app.uploaded if file.container not in gone}

    async def _upload(self, app: _Application, files: list[FileIdentity]) -> None:
        settings, record = self._settings, app.record
        now_ms = int(time.time() * 1000)
        work = Upload(
            user=record.user,
            application=str(app.id),
            node=record.node,
            compression=settings.compression,
            acls=record.acls,
            log_dirs=[str(path) for path in self._log_dirs],
            files=[(str(file.container), file.name) for file in files],
            time_ms=now_ms if settings.roll_interval_s is not None else None,
            now_ms=now_ms,
            files_max=settings.files_per_app_max,
        )
        await self._need_root()
        try:
            await self._in_thread(partial(self._uploaders.upload, work))
        except StorageError:
            self._has_root = False  # perhaps that is why
            raise

    def _report(self, app: _Application, status: "common.LogAggregationStatus", diagnostics: str = "") -> None:
        self.reports.add(app.id, status, diagnostics)
        self._notify()

    async def _in_thread(self, work: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def _on_disk(self, work: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._disk, work)


def _delays(total_s: float) -> Iterator[float]:
    """Pauses between attempts, growing, until they add up to so many seconds."""
    delay_s = _FIRST_DELAY_S
    while total_s > 0:
        yield min(delay_s, total_s)
        total_s -= delay_s
        delay_s = min(2 * delay_s, _DELAY_S_MAX)
