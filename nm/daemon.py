"""The NodeManager: its parts, the order in which they start and stop, and its main function."""

import asyncio
import base64
import contextlib
import errno
import getpass
import logging
import os
import struct
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from nm.admission import admission
from nm.amrm_proxy.proxy import AmrmProxy
from nm.amrm_proxy.start import make_proxy
from nm.containers.container import Container
from nm.containers.course import RuntimeLimits
from nm.containers.executor import DefaultExecutor
from nm.containers.leftovers import clear_leftovers
from nm.containers.replacement_service import ReplacementService
from nm.containers.runtime import ContainerRuntime
from nm.containers.service import SHUFFLE_SERVICE, ContainerService, NodeRegistration
from nm.heartbeat import Heartbeat, NodeReadings, tracker_client
from nm.launch.prepare import NodeIdentity
from nm.localizer.archives import ArchiveLimits
from nm.localizer.localizer import ResourceLocalizer
from nm.logs.aggregation.aggregator import LogAggregation
from nm.logs.aggregation.reports import LogReports
from nm.logs.aggregation.settings import LogAggregationSettings
from nm.logs.pages import LogPages, LogServers
from nm.merger.web import MergerPage
from nm.node_queue import EstimateChanged, NodeQueue
from nm.refreshing import Refreshing
from nm.resources.deletion import Deletion
from nm.resources.directories import NodeDirectories
from nm.resources.disk_watch import DiskWatch
from nm.resources.gpus import Gpus
from nm.resources.groups import open_groups
from nm.resources.memory_limit import MemoryLimits
from nm.resources.monitor import Monitor
from nm.resources.process_scan import machine_cpu_s, processor_need
from nm.resources.processes import become_subreaper, mark_for
from nm.resources.start_pace import StartPace
from nm.resources.start_pacer import StartPacer
from nm.settings import NodeSettings, node_environment
from nm.shuffle.node import NodeShuffle
from nm.shuffle.settings import MergingSettings
from nm.warm.client import ForkerClient
from nm.web import NodeFacts, NodeWeb
from nm.web_settings import NodeWebSettings
from yaqd.config import Configuration
from yaqd.config.reach import reach_line
from yaqd.ipc import RpcConnectionError, RpcServer, server_limits
from yaqd.model import ApplicationId, NodeId
from yaqd.policies.queueing.guard import survive
from yaqd.security import ContainerTokenSecrets, NMTokenSecrets, VerifierKeys

log = logging.getLogger(__name__)

_IO_THREADS = 8
_STOP_DEADLINE_S = 3.0
_WEB_THREADS = 4


@contextlib.contextmanager
def _listening(what: str, host: str, port: int) -> Iterator[None]:
    """Errors of binding as RpcConnectionError, as the RPC server's own."""
    try:
        yield
    except OSError as error:
        number = error.errno or 0
        reason = os.strerror(number) if number > 0 else error.strerror or error
        raise RpcConnectionError(f"{what} cannot listen on {host}:{port}: {reason}") from error


@contextlib.contextmanager
def _named(conf: Configuration, key: str) -> Iterator[None]:
    """These errors as ConfigError about the key that gives the port, or the one of the host where that is at fault."""
    try:
        yield
    except RpcConnectionError as error:
        cause = error.__cause__
        if isinstance(cause, OSError) and cause.errno in (errno.EADDRINUSE, errno.EACCES):
            remedy = "stop what holds the port, or give another one (0: any free one)"
            raise conf.error(key, str(error), remedy) from error
        host = "yarn.nodemanager.bind-host"
        host = host if conf.get(host) else "yarn.nodemanager.address"
        raise conf.error(host, str(error), "give a name or an address of this machine") from error


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
        self._started_ms = int(time.time() * 1000)
        self._tasks: list[asyncio.Task[None]] = []

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
            limits=MemoryLimits(settings.check_physical, settings.check_virtual, settings.virtual_ratio),
            interval_s=settings.monitor_interval_s,
            threads=self._io,
            owns_process=self._owns_process,
        )
        self._make_heartbeat()
        if self.logs is not None:
            self.logs.start()
            self.logs.resume(self._leftover_logs)
        for work in (self._monitor.run(), self._disks.run(), self._beat()):
            self._tasks.append(asyncio.create_task(work))
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
        named = _named(self._conf, "mapreduce.shuffle.port")
        with named, _listening("shuffle service", settings.bind_host, settings.shuffle_port):
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
            limits=ArchiveLimits(settings.archive_max_bytes, settings.archive_max_entries),
            delete=self.deletion.delete,
        )
        queue = NodeQueue(
            settings.resource,
            max_length=settings.queue_max_length,
            by_resources=settings.queue_by_resources,
            opportunistic_max=settings.opportunistic_max,
            policy=settings.opportunistic_policy,
            settings=settings.queue_settings,
            wait=settings.queue_wait,
            smallest=settings.smallest,
        )
        self._executor = DefaultExecutor(
            self.bare,
            self.prepared,
            groups=self._groups,
            batch_class=settings.batch_class,
            kill_delay_s=settings.kill_delay_s,
        )
        self.runtime = ContainerRuntime(
            queue=queue,
            gpus=Gpus(settings.gpus),
            localizer=self.localizer,
            executor=self._executor,
            directories=self.directories,
            deletion=self.deletion,
            identity=self._identity,
            io=self._io,
            limits=RuntimeLimits(settings.stderr_tail_bytes, settings.queue_max_length, settings.retry_interval_min_s),
            pacer=StartPacer(StartPace(os.cpu_count() or 1, settings.start_moment_s), machine_cpu_s, processor_need),
            on_change=self._container_changed,
            on_application_ended=self._application_ended,
        )

    async def _start_services(self) -> None:
        settings = self.settings
        self._nm_keys, self._container_keys = VerifierKeys(), VerifierKeys()
        self._nm_tokens = NMTokenSecrets(self._nm_keys)
        self.registration = NodeRegistration(NodeId(settings.host, 0))
        self._rpc = RpcServer(
            name="container service",
            host=settings.bind_host,
            port=settings.port,
            token_secrets=self._nm_tokens,
            allow_simple=False,
            limits=server_limits(self._conf),
            service_acl=admission(self._conf),
        )
        await self._start_proxy()
        service = ContainerService(
            runtime=self.runtime,
            registration=self.registration,
            nm_tokens=self._nm_tokens,
            container_tokens=ContainerTokenSecrets(self._container_keys),
            shuffle_jobs=self.shuffle_jobs,
            shuffle_port=self.shuffle.port,
            merger_metadata=lambda: self._shuffle.merger_metadata(),
            on_job=self._shuffle.job_came,
            refusal=self._disks.refusal,
            on_updated=lambda container: self.heartbeat.updated(container),
            adopt=self.proxy.adopt if self.proxy is not None else lambda _, launch: launch,
        )
        service.register(self._rpc)
        ReplacementService(self.runtime, service.caller_token).register(self._rpc)
        # no token is known before the node is registered, and then the ResourceManager sends masters here at once
        with _named(self._conf, "yarn.nodemanager.address"):
            await self._rpc.start(serves=False)
        self._undo.push_async_callback(self._rpc.stop)
        self.registration.node_id = NodeId(settings.host, self._rpc.port)
        web_threads = ThreadPoolExecutor(_WEB_THREADS, thread_name_prefix="web")
        self._undo.callback(web_threads.shutdown, wait=False, cancel_futures=True)
        pages = LogPages(
            log_dirs=settings.log_dirs,
            threads=web_threads,
            node_id=lambda: self.node_id,
            is_running=self.runtime.is_running,
            uploaded=self.logs.uploaded if self.logs is not None else lambda _: [],
            servers=LogServers.read(self._conf),
        )
        web = NodeWeb(
            runtime=self.runtime,
            logs=pages,
            facts=self._facts,
            health=self._disks.health,
            shuffle=self._shuffle.figures,
            settings=NodeWebSettings.read(self._conf),
            merger=MergerPage(self.merger),
            shuffle_of=self._shuffle.of_application,
        )
        self._undo.push_async_callback(web.stop)
        named = _named(self._conf, "yarn.nodemanager.webapp.address")
        with named, _listening("web server", settings.bind_host, settings.web_port):
            self.web_address = await web.start(settings.bind_host, settings.web_port)

    async def _start_proxy(self) -> None:
        self.proxy: AmrmProxy | None = make_proxy(
            self._conf,
            local_dir=self.settings.local_dirs[0],
            host=self.settings.host,
            registration=self.registration,
            container_keys=self._container_keys,
            nm_keys=self._nm_keys,
            estimates=self.runtime.estimates,
        )
        if self.proxy is not None:
            self._undo.push_async_callback(self.proxy.stop)
            with _named(self._conf, "yarn.nodemanager.amrmproxy.address"):
                await self.proxy.start()

    def _make_heartbeat(self) -> None:
        settings = self.settings
        host, port = settings.tracker
        client = tracker_client(host, port, user=getpass.getuser(), timeout_s=settings.heartbeat_timeout_s)
        self._undo.push_async_callback(client.close)
        self.heartbeat = Heartbeat(
            client,
            runtime=self.runtime,
            registration=self.registration,
            web_port=self.web_address[1],
            resource=settings.resource,
            nm_keys=self._nm_keys,
            container_keys=self._container_keys,
            readings=NodeReadings(self._disks.health, lambda: self._monitor.node, lambda: self._monitor.containers),
            log_reports=self.logs.reports if self.logs is not None else LogReports(),
            is_out_of_turn=settings.out_of_turn_heartbeats,
            waits_for_resources=settings.queue_by_resources,
            queue_max_length=settings.queue_max_length,
            own_queue_settings=settings.queue_settings,
            on_files_read=lambda read_ms: refreshing.told(read_ms),
            on_registered=self._rpc.serve,
            on_unanswered=lambda why: self._say(
                f"not registered with the ResourceManager at {host}:{port} yet, trying again until it answers: {why}"
            ),
            on_shutdown=self.end,
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
        """What is open to whom, for people; only after start."""
        listening = [("containers", *self._rpc.address), ("web", *self.web_address)]
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
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
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

    def _facts(self) -> NodeFacts:
        settings = self.settings
        return NodeFacts(
            node_id=self.node_id,
            web_port=self.web_address[1],
            resource=settings.resource,
            check_physical=settings.check_physical,
            check_virtual=settings.check_virtual,
            started_ms=self._started_ms,
        )

    def _container_changed(self, container: Container) -> None:
        if self.logs is not None:
            self.logs.container_changed(container, self.runtime.applications[container.id.application_id].acls)
        if self.proxy is not None and container.is_done:
            self.proxy.container_done(container.id)
        self.heartbeat.notify()

    def _application_ended(self, application: ApplicationId) -> None:
        if self.proxy is not None:
            self.proxy.application_ended(application)
        self._shuffle.application_ended(application)
        self._nm_tokens.application_finished(application)
        if self.logs is None or not self.logs.application_ended(application):
            self.deletion.logs_ended(application)
