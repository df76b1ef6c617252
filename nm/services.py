"""Where a node listens to masters and people: the container service, the proxy for masters, the web server."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack

from nm.admission import admission
from nm.amrm_proxy.proxy import AmrmProxy
from nm.amrm_proxy.start import make_proxy
from nm.binding import listening, named
from nm.containers.replacement_service import ReplacementService
from nm.containers.runtime import ContainerRuntime
from nm.containers.service import ContainerService
from nm.logs.aggregation.aggregator import LogAggregation
from nm.logs.pages import LogPages, LogServers
from nm.merger.web import MergerPage
from nm.registration import NodeRegistration
from nm.resources.disk_watch import DiskWatch
from nm.settings import NodeSettings
from nm.shuffle.node import NodeShuffle
from nm.web import NodeFacts, NodeWeb
from nm.web_settings import NodeWebSettings
from yaqd.config import Configuration
from yaqd.ipc import RpcServer, server_limits
from yaqd.model import ContainerId, NodeId
from yaqd.security import NMTokenSecrets

_WEB_THREADS = 4


class NodeServices:
    """Masters are answered once the node is registered: before that it knows no token."""

    def __init__(self, conf: Configuration, settings: NodeSettings) -> None:
        self._conf, self._settings = conf, settings
        self._started_ms = int(time.time() * 1000)
        self.registration = NodeRegistration(NodeId(settings.host, 0))
        self.nm_tokens = NMTokenSecrets(self.registration.nm_keys)
        self.rpc = RpcServer(
            name="container service",
            host=settings.bind_host,
            port=settings.port,
            token_secrets=self.nm_tokens,
            allow_simple=False,
            limits=server_limits(conf),
            service_acl=admission(conf),
        )
        self.proxy: AmrmProxy | None = None
        #: only after start
        self.web_address = ("", 0)

    async def start(
        self,
        undo: AsyncExitStack,
        runtime: ContainerRuntime,
        *,
        shuffle: NodeShuffle,
        disks: DiskWatch,
        logs: LogAggregation | None,
        on_updated: Callable[[ContainerId], None],
    ) -> None:
        """Starts the services; `undo` stops what is started. Raises ConfigError where a port cannot be had."""
        await self._start_proxy(undo, runtime)
        service = ContainerService(
            runtime,
            self.registration,
            self.nm_tokens,
            shuffle,
            refusal=disks.refusal,
            on_updated=on_updated,
            adopt=self.proxy.adopt if self.proxy is not None else lambda _, launch: launch,
        )
        service.register(self.rpc)
        ReplacementService(runtime, service.caller_token).register(self.rpc)
        # no token is known before the node is registered, and then the ResourceManager sends masters here at once
        with named(self._conf, "yarn.nodemanager.address"):
            await self.rpc.start(serves=False)
        undo.push_async_callback(self.rpc.stop)
        self.registration.node_id = NodeId(self._settings.host, self.rpc.port)
        await self._start_web(undo, runtime, shuffle, disks, logs)

    async def _start_proxy(self, undo: AsyncExitStack, runtime: ContainerRuntime) -> None:
        settings = self._settings
        self.proxy = make_proxy(
            self._conf,
            local_dir=settings.local_dirs[0],
            host=settings.host,
            registration=self.registration,
            estimates=runtime.estimates,
        )
        if self.proxy is not None:
            undo.push_async_callback(self.proxy.stop)
            with named(self._conf, "yarn.nodemanager.amrmproxy.address"):
                await self.proxy.start()

    async def _start_web(
        self,
        undo: AsyncExitStack,
        runtime: ContainerRuntime,
        shuffle: NodeShuffle,
        disks: DiskWatch,
        logs: LogAggregation | None,
    ) -> None:
        settings = self._settings
        threads = ThreadPoolExecutor(_WEB_THREADS, thread_name_prefix="web")
        undo.callback(threads.shutdown, wait=False, cancel_futures=True)
        pages = LogPages(
            log_dirs=settings.log_dirs,
            threads=threads,
            node_id=lambda: self.registration.node_id,
            is_running=runtime.is_running,
            uploaded=logs.uploaded if logs is not None else lambda _: [],
            servers=LogServers.read(self._conf),
        )
        web = NodeWeb(
            runtime=runtime,
            logs=pages,
            facts=self._facts,
            health=disks.health,
            shuffle=shuffle.figures,
            settings=NodeWebSettings.read(self._conf),
            merger=MergerPage(shuffle.merger),
            shuffle_of=shuffle.of_application,
        )
        undo.push_async_callback(web.stop)
        with (
            named(self._conf, "yarn.nodemanager.webapp.address"),
            listening("web server", settings.bind_host, settings.web_port),
        ):
            self.web_address = await web.start(settings.bind_host, settings.web_port)

    def _facts(self) -> NodeFacts:
        return NodeFacts(
            node_id=self.registration.node_id,
            web_port=self.web_address[1],
            resource=self._settings.resource,
            check_physical=self._settings.memory_limits.check_physical,
            check_virtual=self._settings.memory_limits.check_virtual,
            started_ms=self._started_ms,
        )
