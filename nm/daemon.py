"""The NodeManager: its parts, the order in which they start and stop, and its main function."""

import asyncio
import base64
import contextlib
import getpass
import logging
import os
import struct
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from nm.binding import listening, named
from nm.containers.container import Container
from nm.containers.executor import DefaultExecutor
from nm.containers.leftovers import clear_leftovers
from nm.containers.parts import ContainerNews, NodeParts, RuntimeLimits
from nm.containers.runtime import ContainerRuntime
from nm.containers.service import SHUFFLE_SERVICE
from nm.heartbeat import Heartbeat, HeartbeatNews, NodeReadings, tracker_client
from nm.launch.prepare import NodeIdentity
from nm.localizer.localizer import ResourceLocalizer
from nm.logs.aggregation.aggregator import LogAggregation
from nm.logs.aggregation.reports import LogReports
from nm.logs.aggregation.settings import LogAggregationSettings
from nm.node_queue import EstimateChanged, NodeQueue
from nm.refreshing import Refreshing
from nm.resources.deletion import Deletion
from nm.resources.directories import NodeDirectories
from nm.resources.disk_watch import DiskWatch
from nm.resources.gpus import Gpus
from nm.resources.groups import open_groups
from nm.resources.monitor import Monitor
from nm.resources.process_scan import machine_cpu_s, processor_need
from nm.resources.processes import become_subreaper, mark_for
from nm.resources.start_pace import StartPace
from nm.resources.start_pacer import StartPacer
from nm.services import NodeServices
from nm.settings import NodeSettings, node_environment
from nm.shuffle.node import NodeShuffle
from nm.shuffle.settings import MergingSettings
from nm.throttle.start import make_throttle
from nm.throttle.throttle import Throttle
from nm.throttle.words import CoresWords
from nm.warm.client import ForkerClient
from yaqd.config import Configuration
from yaqd.config.reach import reach_line
from yaqd.ipc.tasks import TaskSet
from yaqd.model import ApplicationId, NodeId
from yaqd.policies.guard import survive

log = logging.getLogger(__name__)

_IO_THREADS = 8
_STOP_DEADLINE_S = 3.0


class NodeManager:
    """One node. `start` returns when it serves; registering goes on in the background."""

    def __init__(
        self, conf: Configuration, *, owns_process: bool = False, say: Callable[[str], None] = lambda line: None
    ) -> None:
        """`owns_process`: every child of this process is a container's or its own. `say` is for who started it. Raises
        ConfigError."""
        self._conf = conf
        survive(log.error)
        self.settings = NodeSettings.read(conf)
        self._log_settings = LogAggregationSettings.read(conf)
        folder = next(iter(self.settings.local_dirs), Path("/"))
        self._merging_settings = MergingSettings.read(conf, bind_host=self.settings.bind_host, folder=folder)
        self._owns_process, self._say = owns_process, say
        self._tasks = TaskSet()

    async def start(self) -> None:
        """Raises OSError and ConfigError when folders or ports cannot be had; nothing is left running then."""
        #: resolves to why the daemon must end: empty for an orderly end
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        async with contextlib.AsyncExitStack() as undo:
            self._undo = undo
            await self._start_parts()
            self._undo = undo.pop_all()

    async def _start_parts(self) -> None:
        settings = self.settings
        self._services = NodeServices(self._conf, settings)
        self._throttle: Throttle | None = None
        self.registration = self._services.registration
        become_subreaper(mark_for(settings.local_dirs[0] / "NodeManager") if self._owns_process else 0)
        self._io = ThreadPoolExecutor(_IO_THREADS, thread_name_prefix="io")
        self._undo.callback(self._io.shutdown, wait=False, cancel_futures=True)
        self.directories = NodeDirectories(settings.local_dirs, settings.log_dirs)
        self.deletion = Deletion(self.directories, delay_s=settings.delete_delay_s, log_retain_s=settings.log_retain_s)
        self._undo.callback(self.deletion.stop)
        self._make_logs()
        await self._prepare_folders()
        self._start_forkers()
        self._start_shuffle()
        self._start_runtime()
        await self._start_services()
        self._monitor = Monitor(
            self.runtime,
            started=self._executor.started,
            groups=self._groups,
            limits=settings.memory_limits,
            interval_s=settings.monitor_interval_s,
            threads=self._io,
            owns_process=self._owns_process,
        )
        self._throttle = await make_throttle(settings, self.runtime, self._groups, self._io, self._undo)
        self._make_heartbeat()
        if self.logs is not None:
            self.logs.start()
            self.logs.resume(self._leftover_logs)
        throttled = () if self._throttle is None else (self._throttle.run(),)
        for work in (self._monitor.run(), self._disks.run(), self._beat(), *throttled):
            self._tasks.start(work)
        self._undo.push_async_callback(self._stop_tasks)

    def _make_logs(self) -> None:
        self.logs = None
        if self._log_settings is not None:
            self.logs = LogAggregation(
                self._conf,
                self._log_settings,
                log_dirs=self.settings.log_dirs,
                node_id=lambda: self.node_id,
                deletion=self.deletion,
                notify=lambda: self.heartbeat.notify(),
            )
            self._undo.push_async_callback(self.logs.stop, _STOP_DEADLINE_S)

    async def _prepare_folders(self) -> None:
        settings = self.settings
        opened = partial(open_groups, settings.local_dirs[0], is_wanted=settings.control_groups)
        self._groups = await asyncio.get_running_loop().run_in_executor(self._io, opened)
        if self._groups is not None:
            self._undo.push_async_callback(asyncio.to_thread, self._groups.close)
        clear = partial(clear_leftovers, settings.local_dirs, self.deletion.delete)
        await asyncio.get_running_loop().run_in_executor(self._io, clear)
        self._disks = DiskWatch(settings, self.directories, self._io, lambda: self.heartbeat.notify())
        await self._disks.check()
        if not self._disks.health().is_healthy:
            log.error("the node takes no containers: %s", self._disks.health().report)
        else:
            self.directories.make_roots()
            if self._groups is not None:
                self._groups.remember()
        self._leftover_logs = await self.logs.leftovers() if self.logs is not None else []
        self.deletion.sweep_logs(but={record.application for record in self._leftover_logs})

    def _start_forkers(self) -> None:
        self.bare = ForkerClient("bare")
        self.prepared = None
        if self.settings.warm_start:
            self.prepared = ForkerClient("prepared", preload=self.settings.warm_preload)
        for forker in (self.bare, self.prepared):
            if forker is not None:
                forker.start()
                self._undo.push_async_callback(forker.stop)

    def _start_shuffle(self) -> None:
        settings = self.settings
        listens = listening("shuffle service", settings.bind_host, settings.shuffle_port)
        with named(self._conf, "mapreduce.shuffle.port"), listens:
            self._shuffle = NodeShuffle(settings, self._merging_settings, self.directories)
        self.shuffle, self.shuffle_jobs, self.merger = self._shuffle.service, self._shuffle.jobs, self._shuffle.merger
        self._undo.push_async_callback(self._shuffle.stop)
        self._shuffle.start(self._io)

    def _start_runtime(self) -> None:
        settings = self.settings
        fetchers = ThreadPoolExecutor(settings.localizer_threads, thread_name_prefix="fetch")
        self._undo.callback(fetchers.shutdown, wait=False, cancel_futures=True)
        self.localizer = ResourceLocalizer(
            self._conf,
            self.directories,
            threads=fetchers,
            cache_target_bytes=settings.cache_target_bytes,
            limits=settings.archive_limits,
            delete=self.deletion.delete,
        )
        options = settings.queue
        queue = NodeQueue(
            settings.resource,
            max_length=options.max_length,
            by_resources=options.by_resources,
            opportunistic_max=options.opportunistic_max,
            policy=options.policy,
            settings=options.settings,
            wait=options.wait,
            smallest=options.smallest,
        )
        self._executor = DefaultExecutor(
            self.bare,
            self.prepared,
            groups=self._groups,
            batch_class=settings.batch_class,
            kill_delay_s=settings.kill_delay_s,
        )
        pace = StartPace(os.cpu_count() or 1, settings.own_ways.start_moment_s)
        self._pacer = StartPacer(pace, machine_cpu_s, processor_need)
        parts = NodeParts(
            gpus=Gpus(settings.gpus),
            localizer=self.localizer,
            executor=self._executor,
            directories=self.directories,
            deletion=self.deletion,
            identity=self._identity,
            pacer=self._pacer,
            io=self._io,
        )
        limits = RuntimeLimits(settings.stderr_tail_bytes, settings.queue.max_length, settings.retry_interval_min_s)
        news = ContainerNews(self._container_changed, self._application_ended)
        self.runtime = ContainerRuntime(queue, parts, limits, news)

    async def _start_services(self) -> None:
        services = self._services
        await services.start(
            self._undo,
            self.runtime,
            shuffle=self._shuffle,
            disks=self._disks,
            logs=self.logs,
            on_updated=lambda container: self.heartbeat.updated(container),
        )
        self.proxy, self.web_address = services.proxy, services.web_address

    def _make_heartbeat(self) -> None:
        settings = self.settings
        host, port = settings.tracker
        client = tracker_client(host, port, user=getpass.getuser(), timeout_s=settings.heartbeat_timeout_s)
        self._undo.push_async_callback(client.close)
        self.heartbeat = Heartbeat(
            client,
            self.runtime,
            self.registration,
            settings,
            web_port=self.web_address[1],
            readings=NodeReadings(
                self._disks.health,
                lambda: self._monitor.node,
                lambda: self._monitor.containers,
                self.logs.reports if self.logs is not None else LogReports(),
            ),
            news=HeartbeatNews(
                files_read=lambda read_ms: refreshing.told(read_ms),
                registered=self._services.rpc.serve,
                unanswered=lambda why: self._say(
                    f"not registered with the ResourceManager at {host}:{port} yet, trying again until it answers: "
                    f"{why}"
                ),
                shutdown=self.end,
                ways=lambda ways: self._pacer.change(ways.start_moment_s),
            ),
            cores=CoresWords(self._throttle, processors=os.cpu_count() or 1, started_ms=int(time.time() * 1000)),
        )
        refreshing = Refreshing(
            self._conf,
            self.proxy,
            queue_changed=self.heartbeat.change_own_queue,
            wait_changed=lambda name: self.runtime.order([EstimateChanged(name)]),
        )
        self._undo.push_async_callback(refreshing.stop)

    @property
    def node_id(self) -> NodeId:
        """This node as everybody names it; only after start."""
        return self.registration.node_id

    def reach_line(self) -> str:
        """Says what is open to whom, for people; only after start."""
        listening = [("containers", *self._services.rpc.address), ("web", *self.web_address)]
        listening.append(("shuffle", self.settings.bind_host, self.shuffle.port))
        if self.merger is not None:
            listening.append(("merger", self.settings.bind_host, self._merging_settings.merger.port))
        if self.proxy is not None:
            listening.append(("proxy for masters", *self.proxy.server.address))
        acls = self._conf.get_bool("yarn.acl.enable")
        logs = "whom the access lists name" if acls else "everybody (yarn.acl.enable is false)"
        return reach_line("NodeManager", listening, f"Containers start for holders of tokens; logs are read by {logs}")

    def end(self, reason: str) -> None:
        """Asks the daemon to stop."""
        if not self.ended.done():
            self.ended.set_result(reason)

    async def stop(self) -> None:
        """Ends every container and everything started, within a few seconds. Safe to call twice."""
        await self._undo.aclose()

    async def _stop_tasks(self) -> None:
        """Stops hearing from outside, then ends the containers; the forkers' end kills what resists."""
        await self._tasks.end()
        self.runtime.refuse_all()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_STOP_DEADLINE_S):
                await self.runtime.stop()
                await self.heartbeat.unregister()

    # What the parts tell each other -----------------------------------------------------------------------------------

    async def _beat(self) -> None:
        try:
            await self.heartbeat.run()
        except Exception:
            log.exception("the heartbeat failed")
            self.end("the heartbeat failed, see the log")

    def _identity(self) -> NodeIdentity:
        settings = self.settings
        port = base64.b64encode(struct.pack(">i", self.shuffle.port)).decode("ascii")
        return NodeIdentity(
            host=self.node_id.host,
            port=self.node_id.port,
            web_port=self.web_address[1],
            user_home=settings.user_home,
            whitelist=settings.env_whitelist,
            admin=settings.admin_env,
            environment=node_environment(os.environ),
            services={SHUFFLE_SERVICE: port},
            debug_copies=settings.debug_copies,
        )

    def _container_changed(self, container: Container) -> None:
        if self._throttle is not None:
            self._throttle.changed(container.id.application_id)
        if self.logs is not None:
            self.logs.container_changed(container, self.runtime.applications[container.id.application_id].acls)
        if container.is_done:
            if self.proxy is not None:
                self.proxy.container_done(container.id)
            self.heartbeat.notify()  # of no other change: nobody waits for it, and each heartbeat costs

    def _application_ended(self, application: ApplicationId) -> None:
        if self.proxy is not None:
            self.proxy.application_ended(application)
        self._shuffle.application_ended(application)
        self._services.nm_tokens.application_finished(application)
        if self.logs is None or not self.logs.application_ended(application):
            self.deletion.logs_ended(application)
