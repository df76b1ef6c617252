"""The course of this node's containers: drives each through its table and performs what the transitions ask for.

This is the one place of the NodeManager that turns decisions into action. Everything runs on the event loop; files
are touched in the I/O threads. What the rest of the daemon may ask for is in `runtime`.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from nm.containers import diagnostics
from nm.containers.application import Application
from nm.containers.container import Container
from nm.containers.diagnostics import with_advice
from nm.containers.executor import LaunchFailed
from nm.containers.launcher import Abandoned, Launcher
from nm.containers.own_estimates import OwnEstimates
from nm.containers.parts import ContainerNews, NodeParts, RuntimeLimits
from nm.containers.replacement import Replacements
from nm.containers.retries import Retries
from nm.containers.states import TRANSITIONS, Action, Event, Stage
from nm.containers.table import ContainerTable
from nm.launch.context import BadLaunchContext, LaunchContext
from nm.localizer.localizer import LocalizationFailed, Localized
from nm.node_queue import (
    Arrived,
    Began,
    Decision,
    Ended,
    HeldStarts,
    JobReport,
    JobsReported,
    Launch,
    NodeQueue,
    Preempt,
    Refuse,
)
from nm.node_queue_driver import NodeQueueDriver
from nm.resources.directories import NoUsableDisk
from nm.resources.gpus import NotEnoughGpus
from yaqd.ipc.tasks import TaskSet
from yaqd.model import ContainerId, ContainerType, ExitStatus
from yaqd.policies.queueing.means import RecentMean

log = logging.getLogger(__name__)

#: containers whose fetching of files is remembered
_FETCHES = 16
#: how a container goes on when the work of its stage broke
_FAULT_EVENTS = {
    Stage.LOCALIZING: Event.LOCALIZATION_FAILED,
    Stage.LAUNCHING: Event.LAUNCH_FAILED,
    Stage.ABORTING: Event.LAUNCH_FAILED,
    Stage.COMPLETING: Event.COMPLETED,
}


class ContainerCourse:
    def __init__(
        self, table: ContainerTable, queue: NodeQueue, parts: NodeParts, limits: RuntimeLimits, news: ContainerNews
    ) -> None:
        self.driver = NodeQueueDriver(queue, self._carry_out)
        self._table = table
        self._parts = parts
        self._limits = limits
        self._news = news
        self._loop = asyncio.get_running_loop()
        self._tasks = TaskSet()
        self._localized: dict[ContainerId, Localized] = {}
        self._launcher = Launcher(parts, self._in_thread)
        self.replacements = Replacements(
            localizer=parts.localizer,
            holds=self._localized,
            spawn=self._spawn,
            handle=self._handle,
            in_thread=self._in_thread,
            retries=self.retries,
        )
        self._own_estimates = OwnEstimates()
        #: how long containers take until they could start: they fetch their files
        self.fetching = RecentMean(_FETCHES)
        self._actions: dict[Action, Callable[[Container], None]] = {
            Action.NOTHING: lambda container: None,
            Action.LOCALIZE: lambda container: self._spawn(container, self._localize(container)),
            Action.ENQUEUE: self._enqueue,
            Action.LAUNCH: lambda container: self._spawn(container, self._launch(container)),
            Action.TELL_RUNNING: self._tell_running,
            Action.KILL_PROCESS: lambda container: self._spawn(container, self._kill_process(container)),
            Action.RELAUNCH_LATER: self._relaunch_later,
            Action.COMPLETE: lambda container: self._spawn(container, self._complete(container)),
            Action.REPORT: self._report,
        }

    def start(self, container: Container) -> None:
        self._handle(container, Event.START)

    async def over(self) -> None:
        """Returns when nothing is being done with any container."""
        await self._tasks.wait()
        self.driver.stop()

    def held(self) -> HeldStarts:
        """Returns the containers whose turn has come and whose programs wait for a processor."""
        return self._launcher.held()

    def validate(self) -> None:
        live = {container.id for container in self._table.unfinished()}
        self.driver.queue.validate()
        self._parts.gpus.validate(live)
        assert not self._localized.keys() - live

    # Transitions ------------------------------------------------------------------------------------------------------

    def _handle(self, container: Container, event: Event) -> None:
        transition = TRANSITIONS.get((container.stage, event))
        if transition is None:
            log.error("%s: event %s is not legal in stage %s", container.id, event.name, container.stage.name)
            return
        container.stage, action = transition
        self._actions[action](container)

    def kill(self, container_id: ContainerId, status: ExitStatus, reason: str) -> None:
        """Ends a container, whatever it is doing; the first reason given is the one reported."""
        container = self._table.containers.get(container_id)
        if container is None or container.stage in (Stage.COMPLETING, Stage.DONE):
            return
        if container.kill_status is None:
            container.kill_status = status
            container.add_diagnostics(reason)
        self._handle(container, Event.KILL)
        self._launcher.hurry(container_id)

    def _carry_out(self, decision: Decision) -> None:
        container = self._table.containers[decision.container_id]
        match decision:
            case Launch():
                container.turn_at = self._loop.time()
                self._handle(container, Event.TURN)
            case Refuse(_, status, reason):
                container.kill_status = status
                container.add_diagnostics(reason)
                self._handle(container, Event.REFUSED)
            case Preempt(container_id, status, reason):
                self.kill(container_id, status, reason)

    def _spawn(self, container: Container, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.start(work, on_error=partial(self._broke, container))

    def _broke(self, container: Container, error: BaseException) -> None:
        """A fault of ours must not leave the container where it is for ever: it fails."""
        log.error("%s failed in stage %s", container.id, container.stage.name, exc_info=error)
        container.add_diagnostics(f"Internal error of the NodeManager: {error}")
        event = _FAULT_EVENTS.get(container.stage)
        if event is not None:
            self._handle(container, event)

    def retries(self, launch: LaunchContext) -> Retries:
        return Retries(launch.retry_policy, interval_min_s=self._limits.retry_interval_min_s)

    async def _in_thread(self, work: Callable[[], Any]) -> Any:
        return await self._loop.run_in_executor(self._parts.io, work)

    # Actions ----------------------------------------------------------------------------------------------------------

    async def _localize(self, container: Container) -> None:
        try:
            localized = await self._parts.localizer.localize(
                container.grant.user, container.id.application_id, container.launch.resources
            )
        except (LocalizationFailed, NoUsableDisk) as error:
            if container.kill_status is None:
                if isinstance(error, NoUsableDisk) or error.is_disk_full:
                    container.kill_status = ExitStatus.DISKS_FAILED
                container.add_diagnostics(str(error))
            self._handle(container, Event.LOCALIZATION_FAILED)
            return
        if container.stage is not Stage.LOCALIZING:
            self._parts.localizer.release(localized)  # killed meanwhile
        else:
            self._localized[container.id] = localized
            container.localization = localized.counters
        self._handle(container, Event.LOCALIZED)

    def _enqueue(self, container: Container) -> None:
        grant = container.grant
        container.queued_at = self._loop.time()
        is_master = grant.container_type is ContainerType.APPLICATION_MASTER
        if not is_master:
            self.fetching.add(container.queued_at - container.accepted_at)
        self._learn(self._own_estimates.came(container))
        self.driver.tell(Arrived(container.id, grant.resource, grant.execution_type, grant.task, is_master))
        if container.stage is Stage.SCHEDULED:
            self._launcher.prepare_ahead(container, self._localized[container.id])

    async def _launch(self, container: Container) -> None:
        try:
            process = await self._launcher.launch(container, self._localized[container.id])
        except Abandoned:
            self._handle(container, Event.LAUNCH_FAILED)
            return
        except (OSError, BadLaunchContext, LaunchFailed, NoUsableDisk, NotEnoughGpus) as error:
            reason = with_advice(error)
            log.warning("%s could not be launched: %s", container.id, reason)
            container.add_diagnostics(f"Container could not be launched: {reason}")
            container.exit_status = ExitStatus.INVALID
            is_disks_fault = isinstance(error, NoUsableDisk) or diagnostics.is_disk_full(error)
            if is_disks_fault and container.kill_status is None:
                container.kill_status = ExitStatus.DISKS_FAILED
            self._handle(container, Event.LAUNCH_FAILED)
            return
        container.process = process
        container.running_at = self._loop.time()
        if not container.started_at:
            container.started_at = container.running_at
            if container.held_s:
                self.driver.tell(Began(container.id))
        container.is_warm = process.is_warm
        self._handle(container, Event.LAUNCHED)
        process.when_ended(partial(self._ended, container))
        process.exited.add_done_callback(partial(self._exited, container))

    def _ended(self, container: Container) -> None:
        """Its process is gone and says nothing any more, before its exit code is known: the next one need not wait.

        Not where the exit code decides whether another process follows in its place. Not where it has devices, either,
        which what it left behind may still hold.
        """
        may_run_again = container.retries.may_grant or container.previous is not None
        is_over = container.stage is Stage.KILLING or (container.stage is Stage.RUNNING and not may_run_again)
        if is_over and not self._parts.gpus.of(container.id):
            self.driver.tell(Ended(container.id))

    def _exited(self, container: Container, exited: "asyncio.Future[int]") -> None:
        container.exit_status = exited.result()
        log.info("%s exited with code %d", container.id, container.exit_status)
        if container.process is not None and (reaped := container.process.reaped) is not None:
            container.used(reaped.cpu_s, reaped.peak_bytes)
        if self.replacements.rolls_back(container):
            self._handle(container, Event.ROLLED_BACK)
            return
        container.retry_delay_s = None
        if container.stage is Stage.RUNNING:
            container.retry_delay_s = container.retries.delay_after(container.exit_status, self._loop.time())
        self._handle(container, Event.EXITED if container.retry_delay_s is None else Event.FAILED)

    def _relaunch_later(self, container: Container) -> None:
        """The same folders, the same place in the node's resources: only the process is new."""
        assert container.retry_delay_s is not None
        container.process = None
        log.info("%s runs again in %.1f s", container.id, container.retry_delay_s)
        self._loop.call_later(container.retry_delay_s, self._relaunch, container)

    def _relaunch(self, container: Container) -> None:
        if container.stage is Stage.RELAUNCHING:  # else it was killed meanwhile
            self._handle(container, Event.RELAUNCH)

    def _tell_running(self, container: Container) -> None:
        assert container.process is not None
        container.is_replacing = False
        log.info(
            "%s runs as %s process %d, %.1f ms after it was accepted",
            container.id,
            "warm" if container.is_warm else "cold",
            container.process.pid,
            1000 * (container.running_at - container.accepted_at),
        )
        self._news.changed(container)

    async def _kill_process(self, container: Container) -> None:
        assert container.process is not None
        await container.process.terminate()

    async def _complete(self, container: Container) -> None:
        """Gathers what there is to say about the end. The process, if there was one, has ended."""
        container.ended_at = self._loop.time()
        await self._launcher.given_up(container)
        code = container.exit_status
        if container.kill_status is not None:
            if container.process is not None:
                container.add_diagnostics(f"Container killed on request. Exit code is {code}")
            container.exit_status = container.kill_status
        elif code > 0 and container.folders is not None:
            text = await self._in_thread(
                partial(diagnostics.failure_text, code, container.folders.log_dir, self._limits.stderr_tail_bytes)
            )
            container.add_diagnostics(text)
        localized = self._localized.pop(container.id, None)
        if localized is not None:
            self._parts.localizer.release(localized)
        self._handle(container, Event.COMPLETED)

    def _report(self, container: Container) -> None:
        container.process = None
        if container.folders is not None:
            self._parts.deletion.container_ended(container.folders)
        log.info("%s is done with exit status %d", container.id, container.exit_status)
        self._parts.gpus.release(container.id)
        self._news.changed(container)
        self.driver.tell(Ended(container.id))
        self._learn(self._own_estimates.ended(container))
        application = self._table.applications.get(container.id.application_id)
        if application is not None and application.is_ending:
            self.retire(application)

    def _learn(self, report: JobReport | None) -> None:
        """Where nobody tells how long containers run and the order of those that wait may depend on it."""
        settings = self.driver.queue.settings
        if report is not None and settings.ordering is not None and not settings.enabled:
            self.driver.tell(JobsReported((report,)))

    def retire(self, application: Application) -> None:
        """Deletes an ending application's folders once its last container is done."""
        if not self._table.retire(application, self._loop.time()):
            return
        self._parts.localizer.application_ended(application.user, application.id)
        self._news.application_ended(application.id)
        self._parts.deletion.application_ended(application.user, application.id)
        log.info("%s is over on this node", application.id)
