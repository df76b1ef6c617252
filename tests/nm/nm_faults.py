"""Waiting for things to be gone, and a NodeManager in a process of its own to be killed."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from nm.warm.marks import mark_of
from tests.nm.nm_cluster import FakeResourceManager, Master, node_configuration
from yaqd.model import NodeId
from yaqd.model.child_processes import children_of
from yaqd.proto import convert


async def gone(condition: Callable[[], Any], timeout_s: float = 10.0) -> bool:
    """True once the condition is false: for what no heartbeat tells, such as processes of the kernel's."""
    deadline = asyncio.get_running_loop().time() + timeout_s
    while condition():
        if asyncio.get_running_loop().time() > deadline:
            return False
        await asyncio.sleep(0.005)
    return True


class NodeProcess:
    """`python -m nm` with a configuration folder, as a service manager would run it."""

    def __init__(self, process: asyncio.subprocess.Process, ready: str) -> None:
        self.process = process
        self.ready = ready
        self.node_id = NodeId.parse(dict(word.split("=") for word in ready.split()[2:])["node"])

    @classmethod
    async def start(
        cls, rm: FakeResourceManager, root: Path, overrides: Mapping[str, str] | None = None, before: Sequence[str] = ()
    ) -> "NodeProcess":
        process = await launch_daemon(rm.rpc.port, root, overrides, before)
        assert process.stdout is not None
        async with asyncio.timeout(20):
            ready = (await process.stdout.readline()).decode()
        assert ready.startswith("NodeManager ready "), ready
        node = cls(process, ready)
        await rm.until(lambda: any(convert.node_id(h.node_status.node_id) == node.node_id for h in rm.heartbeats))
        return node

    def master(self, rm: FakeResourceManager, app: int = 1) -> Master:
        return Master(rm, self, app)  # type: ignore[arg-type]

    def children(self) -> set[int]:
        """Direct children: forkers, and containers whose forker died."""
        return children_of(self.process.pid)

    def helpers(self) -> set[int]:
        """Those that it has started for itself."""
        return {pid for pid in self.children() if mark_of(pid) == mark_of(self.process.pid)}

    async def kill(self, *, with_forkers: bool) -> None:
        if with_forkers:
            forkers = self.helpers()
            os.kill(self.process.pid, signal.SIGSTOP)  # so that it cannot start another
            for forker in forkers:
                os.kill(forker, signal.SIGKILL)
        self.process.kill()
        await self.process.wait()


async def launch_daemon(
    tracker_port: int, root: Path, overrides: Mapping[str, str] | None = None, before: Sequence[str] = ()
) -> asyncio.subprocess.Process:
    """`before`: a command that starts it."""
    conf_dir = root / "conf"
    conf_dir.mkdir(exist_ok=True)
    node_configuration(root, tracker_port, overrides).write_xml(conf_dir / "yarn-site.xml")
    return await asyncio.create_subprocess_exec(
        *before,
        sys.executable,
        "-m",
        "nm",
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "HADOOP_CONF_DIR": str(conf_dir)},
    )


def processes_of(container: object, name: str = "") -> list[int]:
    """Live processes, all or those of one name, that were started with this container's id in their environment."""
    wanted = f"CONTAINER_ID={container}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if not entry.name.isdigit() or wanted not in (entry / "environ").read_bytes().split(b"\0"):
                continue
            if not name or (entry / "comm").read_text().strip() == name:
                found.append(int(entry.name))
        except OSError:
            continue
    return found
