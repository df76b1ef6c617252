"""The NodeManager: its parts, the order in which they start and stop, and its main function."""

import asyncio
import base64
import contextlib
import getpass
import logging
import os
import signal
import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from nm.container import Container
from nm.container_runtime import ContainerRuntime, RuntimeLimits
from nm.container_service import SHUFFLE_SERVICE, ContainerService, NodeRegistration
from nm.deletion import Deletion
from nm.directories import NodeDirectories
from nm.executor import DefaultExecutor
from nm.heartbeat import Heartbeat, NodeHealth, NodeReadings, Utilization, tracker_client
from nm.launch.prepare import NodeIdentity
from nm.localizer.archives import ArchiveLimits
from nm.localizer.localizer import ResourceLocalizer
from nm.processes import become_subreaper
from nm.queue import NodeQueue
from nm.settings import NodeSettings, node_environment
from nm.shuffle.jobs import ShuffleJobs
from nm.warm.client import ForkerClient
from yaqd.config import ConfigError, Configuration
from yaqd.ipc import RpcConnectionError, RpcServer
from yaqd.ipc.loop import run
from yaqd.model import ApplicationId, NodeId, Resource
from yaqd.proto import yarn_server_pb2 as server
from yaqd.security import ContainerTokenSecrets, NMTokenSecrets, VerifierKeys

log = logging.getLogger(__name__)

_IO_THREADS = 8
_UNLIMITED_VCORES = 1 << 30
_STOP_DEADLINE_S = 4.0


class NodeManager:
    """One node. `start` returns when it serves; registering goes on in the background."""

    def __init__(self, conf: Configuration, *, owns_process: bool = False) -> None:
        """`owns_process`: every orphan that becomes a child of this process is a container's. Raises ConfigError."""
        self._conf = conf
        self.settings = NodeSettings.read(conf)
        self._owns_process = owns_process
        #: why the ResourceManager, or trouble, ends the daemon; None while it should run
        self.ended: asyncio.Future[str] | None = None

    async def start(self) -> None:
        """Raises OSError and RpcConnectionError when folders or ports cannot be had."""
        settings = self.settings
        become_subreaper()
        self.ended = asyncio.get_running_loop().create_future()
        self.directories = NodeDirectories(settings.local_dirs, settings.log_dirs)
        self.directories.make_roots()
        self._io = ThreadPoolExecutor(_IO_THREADS, thread_name_prefix="io")
        self._fetchers = ThreadPoolExecutor(settings.localizer_threads, thread_name_prefix="fetch")
        self.deletion = Deletion(self.directories, delay_s=settings.delete_delay_s, log_retain_s=settings.log_retain_s)
        self._bare = ForkerClient("bare")
        self._bare.start()
        self._prepared = ForkerClient("prepared", preload=settings.warm_preload) if settings.warm_start else None
        if self._prepared is not None:
            self._prepared.start()
        self.shuffle_jobs = ShuffleJobs()
        self._start_runtime()
        await self._start_services()
        self._beating = asyncio.create_task(self._beat())

    def _start_runtime(self) -> None:
        settings = self.settings
        self.localizer = ResourceLocalizer(
            self._conf,
            self.directories,
            threads=self._fetchers,
            cache_target_bytes=settings.cache_target_bytes,
            limits=ArchiveLimits(settings.archive_max_bytes, settings.archive_max_entries),
            delete=self.deletion.delete,
        )
        self.runtime = ContainerRuntime(
            queue=NodeQueue(
                settings.resource, max_length=settings.queue_max_length, by_resources=settings.queue_by_resources
            ),
            localizer=self.localizer,
            executor=DefaultExecutor(self._bare, self._prepared),
            directories=self.directories,
            deletion=self.deletion,
            identity=self._identity,
            io=self._io,
            limits=RuntimeLimits(settings.kill_delay_s, settings.stderr_tail_bytes, settings.queue_max_length),
            on_change=self._container_changed,
            on_application_ended=self._application_ended,
        )

    async def _start_services(self) -> None:
        settings = self.settings
        nm_keys, container_keys = VerifierKeys(), VerifierKeys()
        self._nm_tokens = NMTokenSecrets(nm_keys)
        self.rpc = RpcServer(
            name="container service",
            host=settings.bind_host,
            port=settings.port,
            token_secrets=self._nm_tokens,
            allow_simple=False,
        )
        self.registration = NodeRegistration(NodeId(settings.host, 0))
        ContainerService(
            runtime=self.runtime,
            registration=self.registration,
            nm_tokens=self._nm_tokens,
            container_tokens=ContainerTokenSecrets(container_keys),
            shuffle_jobs=self.shuffle_jobs,
            shuffle_port=lambda: self.shuffle_port,
            refusal=lambda: None,
        ).register(self.rpc)
        await self.rpc.start()
        self.registration.node_id = NodeId(settings.host, self.rpc.port)
        self.web_address = ("127.0.0.1", 0)
        self.shuffle_port = settings.shuffle_port
        host, port = settings.tracker
        self._client = tracker_client(host, port, user=getpass.getuser(), timeout_s=settings.heartbeat_timeout_s)
        self.heartbeat = Heartbeat(
            self._client,
            runtime=self.runtime,
            registration=self.registration,
            web_port=self.web_address[1],
            resource=settings.resource,
            nm_keys=nm_keys,
            container_keys=container_keys,
            readings=NodeReadings(lambda: NodeHealth(True, "", 0), Utilization, Utilization),
            is_out_of_turn=settings.out_of_turn_heartbeats,
            on_registered=self._registered,
            on_shutdown=self.end,
        )

    @property
    def node_id(self) -> NodeId:
        """This node as everybody names it; only after start."""
        return self.registration.node_id

    def end(self, reason: str) -> None:
        """Asks the daemon to stop."""
        if self.ended is not None and not self.ended.done():
            self.ended.set_result(reason)

    async def stop(self) -> None:
        """Ends every container and everything started, within a few seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_STOP_DEADLINE_S):
                self._beating.cancel()
                await asyncio.gather(self._beating, return_exceptions=True)
                await self.rpc.stop()
                await self.runtime.stop()
                await self.heartbeat.unregister()
        await self._client.close()
        await self._bare.stop()
        if self._prepared is not None:
            await self._prepared.stop()
        self._fetchers.shutdown(wait=False, cancel_futures=True)
        self._io.shutdown(wait=False, cancel_futures=True)
        self.deletion.stop()

    # What the parts tell each other -----------------------------------------------------------------------------------

    async def _beat(self) -> None:
        try:
            await self.heartbeat.run()
        except Exception:
            log.exception("the heartbeat failed")
            self.end("the heartbeat failed, see the log")

    def _identity(self) -> NodeIdentity:
        settings = self.settings
        port = base64.b64encode(struct.pack(">i", self.shuffle_port)).decode("ascii")
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
        self.heartbeat.notify()

    def _application_ended(self, application: ApplicationId) -> None:
        self.shuffle_jobs.forget(application)
        self._nm_tokens.application_finished(application)

    def _registered(self, response: server.RegisterNodeManagerResponse) -> None:
        resource = self.settings.resource
        if not self.registration.counts_vcores:
            # a stock scheduler may grant by memory alone: then no container waits for cores that were never counted
            resource = Resource(resource.memory_mb, _UNLIMITED_VCORES, resource.extras)
        self.runtime.set_capacity(resource)


async def _serve(conf: Configuration) -> int:
    node = NodeManager(conf, owns_process=True)
    await node.start()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, node.end, "")
    web = f"{node.node_id.host}:{node.web_address[1]}"
    print(f"NodeManager ready node={node.node_id} web={web} shuffle={node.shuffle_port}", flush=True)
    assert node.ended is not None
    reason = await node.ended
    if reason:
        log.error("ending: %s", reason)
    await node.stop()
    return 1 if reason else 0


def main(conf: Configuration) -> int:
    """Runs a NodeManager until SIGTERM, SIGINT or the ResourceManager ends it; returns the exit code."""
    try:
        return run(_serve(conf))
    except (ConfigError, RpcConnectionError) as error:
        log.error("NodeManager cannot start: %s", error)
        return 2
    except OSError as error:
        place = f" {Path(error.filename)}" if error.filename else ""
        log.error("NodeManager cannot start:%s: %s", place, error.strerror or error)
        return 2
