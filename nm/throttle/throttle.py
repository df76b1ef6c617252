"""Holds applications to the cores that the ResourceManager gives them on this node, and counts what they use.

The kernel does it where this process may make control groups with a bound (`nm.throttle.quota`). Elsewhere a bucket of
core-seconds does (`nm.throttle.bucket`): out of tokens, an application's processes are stopped, and go on as it fills.
What is looked at costs the same whatever else runs on the node: nothing is done for applications that are not listed.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor as ThreadExecutor
from functools import partial
from typing import Final, TypeVar

from nm.containers.application import Application
from nm.containers.container import Container
from nm.throttle.ledger import SeenProcess
from nm.throttle.look import Wanted, look, processor_clock
from nm.throttle.members import Members
from nm.throttle.quota import CpuQuota
from yaqd.model import ApplicationId, ContainerId

T = TypeVar("T")

log = logging.getLogger(__name__)

#: between looks for processes, s, where some may have to be held, and where they are counted only
_FIND_S: Final = 0.2
_COUNT_S: Final = 1.0
#: after new ones were found, which may start others, and then twice as long each time
_FIND_SOON_S: Final = 0.02
#: looks take no more than this part of a processor, and those that come sooner
_SHARE_MOST: Final = 0.02
_SOON_SHARE_MOST: Final = 0.2
#: what one application's turns may take of the event loop: one with thousands of processes is looked at less often
_TURN_SHARE_MOST: Final = 0.1
#: bounds of a ResourceManager that has not been heard of for so long do not hold any more, s
_SILENT_S: Final = 30.0


class Throttle:
    """Made on the event loop, and used there alone."""

    def __init__(
        self,
        containers: Mapping[ContainerId, Container],
        applications: Mapping[ApplicationId, Application],
        *,
        quota: CpuQuota | None,
        threads: ThreadExecutor,
        processors: int,
    ) -> None:
        """Look at nothing yet; `quota` None: processes are stopped instead. `processors` are the machine's."""
        self._containers, self._applications = containers, applications
        self._quota = quota
        self._threads = threads
        self._processors = processors
        self._loop = asyncio.get_running_loop()
        #: of all that were listed and are here still
        self._members: dict[ApplicationId, Members] = {}
        self._listed: Mapping[ApplicationId, int | None] = {}
        #: those in the kernel's hands, and how many thousandths of a core it was told
        self._by_quota: dict[ApplicationId, int] = {}
        self._news = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._heard_at = self._loop.time()
        #: until the next look, and for how long the last one had a processor, s
        self._find_s = _FIND_S
        self._took_s = 0.0

    # What the heartbeat says and asks ---------------------------------------------------------------------------------

    def order(self, cores: Mapping[ApplicationId, int | None]) -> None:
        """Hold these applications to so many thousandths of a core, None: count them only, and let all others be."""
        self._listed = dict(cores)
        now = self._loop.time()
        for app_id, members in self._members.items():
            if app_id not in cores:
                members.milli = None
                members.free()
        for app_id, milli in cores.items():
            members = self._members.get(app_id) or Members(processor_clock, processors=self._processors)
            self._members[app_id] = members
            members.milli = milli
            members.refresh(self._running(app_id))
            if milli is None:
                members.free()
            elif self._quota is None:
                members.bound(milli, now)
        self._news.set()
        self._set_timer()

    def heard(self) -> None:
        """Note that the ResourceManager has answered: what it ordered last holds."""
        self._heard_at = self._loop.time()

    def changed(self, app_id: ApplicationId) -> None:
        """Note that a container of the application has started or ended: its processes are looked for at once."""
        if app_id in self._listed:
            self._find_s = _FIND_SOON_S
            self._news.set()

    def totals(self) -> dict[ApplicationId, float]:
        """Return the processor time, s, that each listed application has used here since it was first listed, and what
        ran then had used before."""
        found = {}
        for app_id in self._listed:
            members = self._members[app_id]
            if app_id in self._applications:
                members.refresh(self._running(app_id))
                found[app_id] = members.total_s()
        return found

    # At work ----------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Look for processes until cancelled; what was stopped goes on then."""
        try:
            while True:
                self._news.clear()
                try:
                    await self._find()
                except Exception:
                    log.exception("the look for processes of applications failed")
                await asyncio.sleep(self._took_s / _SOON_SHARE_MOST)  # whatever happens meanwhile
                try:
                    async with asyncio.timeout(self._pause_s()):
                        await self._news.wait()
                except TimeoutError:
                    pass
        finally:
            self.stop()

    def stop(self) -> None:
        """Let everything go on. Safe to call twice."""
        self._listed = {}
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for members in self._members.values():
            members.free()

    def _pause_s(self) -> float | None:
        if not self._members:
            return None
        is_bound = any(members.milli is not None for members in self._members.values())
        if is_bound and self._find_s < _FIND_S:
            return self._find_s
        return max(_FIND_S if is_bound else _COUNT_S, self._took_s / _SHARE_MOST)

    async def _find(self) -> None:
        """Look for the processes of all that are listed, and bring them to the kernel's bound where there is one."""
        if self._listed and self._loop.time() - self._heard_at > _SILENT_S:
            log.warning("no ResourceManager has been heard of for %.0f s: its bounds on cores do not hold", _SILENT_S)
            self.order({})
        for app_id in [app_id for app_id in self._members if app_id not in self._applications]:
            if app_id not in self._listed and app_id not in self._by_quota:
                self._members.pop(app_id).free()
        wanted = []
        for app_id in self._listed:
            members = self._members[app_id]
            members.refresh(self._running(app_id))
            wanted += [member.wanted() for member in members]
        found, self._took_s = await self._in_thread(partial(_timed_look, wanted)) if wanted else ({}, 0.0)
        self._find_s = min(2 * self._find_s, _FIND_S)
        for app_id, members in list(self._members.items()):
            new = members.looked(found)
            if new:
                self._find_s = _FIND_SOON_S
            if self._quota is not None:
                await self._keep_quota(self._quota, app_id, members, [one.pid for one in new if one.may_be_held])

    async def _keep_quota(self, quota: CpuQuota, app_id: ApplicationId, members: Members, new: list[int]) -> None:
        """Have the kernel bound the application; what it does not take is held by signals from then on."""
        name, told, milli = str(app_id), self._by_quota.get(app_id), members.milli
        is_bound = milli is not None and app_id in self._applications
        if not is_bound and told is None:
            return
        try:
            if milli is None or not is_bound:
                await self._in_thread(partial(quota.free, name))
                self._by_quota.pop(app_id, None)
                return
            if told != milli:
                await self._in_thread(partial(quota.bound, name, milli / 1000))
                self._by_quota[app_id] = milli
            if told is None:
                new = [pid for member in members for pid in (seen.pid for seen in member.ledger.seen.values())]
            if new:
                await self._in_thread(partial(quota.put, name, new))
        except OSError as error:
            log.warning("the kernel does not bound processors for %s, signals do from now on: %s", app_id, error)
            await self._do_without_quota(quota)

    async def _do_without_quota(self, quota: CpuQuota) -> None:
        self._quota = None
        self._by_quota.clear()
        with contextlib.suppress(OSError):
            await self._in_thread(partial(quota.close))
        for app_id, milli in self._listed.items():
            if milli is not None:
                self._members[app_id].bound(milli, self._loop.time())
        self._set_timer()

    async def _in_thread(self, work: "partial[T]") -> T:
        return await self._loop.run_in_executor(self._threads, work)

    def _running(self, app_id: ApplicationId) -> Iterable[Container]:
        application = self._applications.get(app_id)
        ids = application.containers if application is not None else ()
        return [self._containers[one] for one in ids if one in self._containers]

    # Buckets ----------------------------------------------------------------------------------------------------------

    def _turns(self) -> None:
        self._timer = None
        now = self._loop.time()
        for app_id in self._listed:
            members = self._members[app_id]
            if members.bucket is not None and members.due_at <= now:
                began = time.thread_time()
                try:
                    members.refresh(self._running(app_id))
                    members.turn(now)
                    members.due_at = max(members.due_at, now + (time.thread_time() - began) / _TURN_SHARE_MOST)
                except Exception:
                    log.exception("%s is not held to its cores any more: its processes cannot be stopped", app_id)
                    members.free()
        self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        dues = [self._members[app_id].due_at for app_id in self._listed if self._members[app_id].bucket is not None]
        if dues:
            self._timer = self._loop.call_at(min(dues), self._turns)


def _timed_look(wanted: Sequence[Wanted]) -> tuple[dict[int, list[SeenProcess]], float]:
    """Look for their processes; returns for how long that had a processor, too, s. Blocking."""
    began = time.thread_time()
    return look(wanted), time.thread_time() - began
