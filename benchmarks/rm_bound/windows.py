"""What is measured of one ResourceManager under load: windows of time, and what was done in each."""

import asyncio
import gc
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from ..live_master import Addresses
from ..live_tasks import StartLog
from ..rm_load import Manager, cpu_seconds
from ..stock.daemons import current_user
from .masters import HungryMaster
from .nodes import ClockFleet, NodeWays
from .sides import Side

#: containers that each master wants, which is more than ever run
_WANT = 1_000_000
#: masters that call with nothing to say call so often, s
_IDLE_POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class Load:
    """What all sides are given; times are seconds."""

    nodes: int = 2000
    #: of each node
    slots: int = 1
    task_s: float = 1.0
    heartbeat_s: float = 1.0
    masters: int = 20
    poll_s: float = 1.0
    #: before a window, and the window itself
    warm_s: float = 15.0
    window_s: float = 20.0


@dataclass(frozen=True, slots=True)
class Window:
    """What was done in a window of time."""

    seconds: float
    #: of the slots' time: with a running task; and containers that waited at nodes, by slot
    used: float
    waiting: float
    #: of a core each: the ResourceManager's process and the driver
    rm_busy: float
    driver_busy: float
    beats: int
    calls: int
    given: int
    ended: int
    #: that went back without having run
    refused: int
    #: mean time to the answer of a heartbeat and of a master's call, ms
    answer_ms: float
    call_ms: float

    @property
    def rm_s(self) -> float:
        """Processor time of the ResourceManager, s."""
        return self.rm_busy * self.seconds

    def container_s(self, beat_s: float, call_s: float) -> float:
        """Return what is left of it for each container, where heartbeats and calls take so much, s."""
        return (self.rm_s - self.beats * beat_s - self.calls * call_s) / self.given


@dataclass(frozen=True, slots=True)
class Costs:
    """Processor time of a ResourceManager for each heartbeat, each master's call and each container, s."""

    beat_s: float
    call_s: float
    container_s: float


class Loaded:
    """Nodes and masters around one ResourceManager."""

    def __init__(self, manager: Manager, fleet: ClockFleet, masters: list[HungryMaster], load: Load) -> None:
        self.manager, self.fleet, self.masters, self.load = manager, fleet, masters, load

    async def window(self, seconds: float) -> Window:
        """Let so much time pass, s, and return what was done in it."""
        before = self._seen()
        await asyncio.sleep(seconds)
        after = self._seen()
        self.fleet.check()
        grew = {name: after[name] - before[name] for name in after}
        passed = grew["at"]
        slots = self.load.nodes * self.load.slots
        return Window(
            seconds=passed,
            used=grew["busy_s"] / (slots * passed),
            waiting=grew["queued_s"] / (slots * passed),
            rm_busy=grew["rm_s"] / passed,
            driver_busy=grew["driver_s"] / passed,
            beats=int(grew["beats"]),
            calls=int(grew["calls"]),
            given=int(grew["given"]),
            ended=int(grew["ended"]),
            refused=int(grew["refused"]),
            answer_ms=1000 * grew["answer_s"] / max(1, grew["beats"]),
            call_ms=1000 * grew["call_s"] / max(1, grew["calls"]),
        )

    def _seen(self) -> dict[str, float]:
        tally = self.fleet.tally
        tally.pass_to(self.fleet.loop.time())
        return asdict(tally) | {
            "given": sum(one.given for one in self.masters),
            "calls": sum(one.calls for one in self.masters),
            "call_s": sum(one.call_s for one in self.masters),
            "rm_s": cpu_seconds(self.manager.pid),
            "driver_s": time.process_time(),
        }

    @asynccontextmanager
    async def feeding(self, poll_s: float) -> AsyncIterator[None]:
        """Let all masters call as often as that, s, one after another, as long as this lasts."""
        is_over = False
        calling = []
        for master in self.masters:
            master.poll_s = poll_s
            calling.append(asyncio.create_task(master.feed(self.fleet.run, lambda: is_over)))
            await asyncio.sleep(poll_s / len(self.masters))
        try:
            yield
        finally:
            is_over = True
            await asyncio.gather(*calling)


@asynccontextmanager
async def loaded(manager: Manager, side: Side, load: Load, folder: Path) -> AsyncIterator[Loaded]:
    """Have all nodes beat and all masters registered; nothing is asked for yet."""
    ways = NodeWays(load.slots, side.is_ours, side.has_queues, load.task_s)
    fleet = ClockFleet(manager.tracker, load.nodes, ways)
    await fleet.start(load.heartbeat_s)
    await asyncio.sleep(load.heartbeat_s)
    fleet.check()
    addresses = Addresses(manager.client, manager.scheduler, manager.client, current_user())
    log = StartLog(folder)
    masters = [HungryMaster(addresses, log, poll_s=load.poll_s) for _ in range(load.masters)]
    for master in masters:
        await master.open()
    gc.collect()
    gc.freeze()
    try:
        yield Loaded(manager, fleet, masters, load)
    finally:
        fleet.stop()
        gc.unfreeze()


async def measure(manager: Manager, side: Side, load: Load, folder: Path) -> Window:
    """Return the window in which masters want more than can run."""
    async with loaded(manager, side, load, folder) as around:
        return await _hungry(around)


async def _hungry(around: Loaded) -> Window:
    for master in around.masters:
        master.want(_WANT)
    async with around.feeding(around.load.poll_s):
        await asyncio.sleep(around.load.warm_s)
        return await around.window(around.load.window_s)


async def measure_costs(manager: Manager, side: Side, load: Load, folder: Path) -> tuple[Costs, Window]:
    """Return what each kind of call takes, one after the other: beats alone, calls beside them, then containers."""
    async with loaded(manager, side, load, folder) as around:
        await asyncio.sleep(load.warm_s)
        idle = await around.window(load.window_s)
        beat_s = idle.rm_s / idle.beats
        async with around.feeding(_IDLE_POLL_S):
            await asyncio.sleep(load.warm_s / 2)
            calling = await around.window(load.window_s / 2)
        call_s = (calling.rm_s - calling.beats * beat_s) / calling.calls
        full = await _hungry(around)
        return Costs(beat_s, call_s, full.container_s(beat_s, call_s)), full
