"""The job manager: one asyncio process per job that keeps the machine fed and carries its decisions out.

Three sources of events: the ResourceManager's answers (`rm_link`), the tasks' calls (`umbilical`) and a clock.
`dispatch` is the one way in and `_perform` the one way out. Files (committing output, history, staging) are
touched in a thread, never on the event loop. What comes after the machine has finished is `ending`.
"""

import asyncio
import logging
import signal
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from tez_adapter.client.sizes import too_large
from tez_adapter.core import events as ev
from tez_adapter.core.dag import AttemptId
from tez_adapter.core.machine import JobMachine
from tez_adapter.core.records import Completion
from tez_adapter.core.states import JobState
from tez_adapter.jobspec import JobSpec
from tez_adapter.kinds.registry import KINDS
from tez_adapter.master.access import JobAccess
from tez_adapter.master.ended import JobEnd
from tez_adapter.master.ending import Ending
from tez_adapter.master.finished import NUMBERS, Finished, FinishedStages, read_finished
from tez_adapter.master.granted import Granted
from tez_adapter.master.left import WorkLeft
from tez_adapter.master.nm_links import NodeLinks
from tez_adapter.master.output import JobOutput
from tez_adapter.master.own_stages import OwnStages
from tez_adapter.master.record import CounterList, JobRecord
from tez_adapter.master.rm_link import ResourceManagerLink, application_is_over
from tez_adapter.master.services import service_of
from tez_adapter.master.surroundings import job_server, scheduler_address, token_of, who_am_i
from tez_adapter.master.task_launch import TaskLaunch
from tez_adapter.master.umbilical import Umbilical
from tez_adapter.merging.driver import JobToMerge, Merging
from tez_adapter.merging.flow_shuffles import FlowMerging
from tez_adapter.merging.settings import unmerged_summary
from yaqd.config import Configuration
from yaqd.ipc import client_options
from yaqd.ipc.errors import InvalidResourceRequest, RemoteException, RpcAuthenticationError, RpcError
from yaqd.ipc.tasks import TaskSet
from yaqd.model import ContainerId, NodeId
from yaqd.proto import convert
from yaqd.proto import job_pb2 as job
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.security import AM_RM_TOKEN, JobTokenSecrets, Token

log = logging.getLogger(__name__)

_TICK_S = 0.25
_RM_RETRY_S = 1.0
#: kept for clients, which ask several times a second
_NOTICES_MAX = 20


class ApplicationMaster:
    def __init__(self, spec: JobSpec, splits: list[dict[str, Any]], environ: Mapping[str, str]) -> None:
        self.spec = spec
        self.user = spec.user
        self.conf: Configuration = spec.configuration()
        self.access = JobAccess(self.conf, spec.user)
        self._splits = splits
        self._kind = KINDS[spec.kind]
        self._environ = environ
        self._container, self._credentials = who_am_i(environ)
        manager = self._container.attempt_id.attempt
        self._output = JobOutput(spec, self.conf, manager)
        dag = self._kind.plan(spec, self.conf, splits)
        self._finished_before = self._read_finished(manager)
        self.machine = JobMachine(
            dag, restored=self._finished_before.attempts, first_number=NUMBERS * (manager - 1) if spec.flow else 0
        )
        self._granted = Granted()
        self._left = WorkLeft(self.machine, time.monotonic, self._granted.find)
        #: for clients, the latest of so many
        self._notices: deque[str] = deque(maxlen=_NOTICES_MAX)
        self._notices_total = 0
        self._stages: FinishedStages | None = None
        self._own_stages = OwnStages.of(self.conf, self.machine) if spec.flow is not None else None
        self._started_ms = int(time.time() * 1000)

    def _read_finished(self, manager: int) -> Finished:
        if self.spec.flow is None or manager == 1 or not self._output.stands():
            return Finished()
        return read_finished(self.spec, self.conf, self.spec.flow.plan)

    def _go_on(self) -> None:
        """Take up what a former job manager has finished, where there is something."""
        if self.spec.flow is None:
            return
        before = self._finished_before
        for attempt, counted in before.counters:
            self._record.note_counters(attempt, counted)
        self._nodes.shuffle_ports.update(before.ports)
        self._stages = FinishedStages(self.spec, self.conf, self.machine, self._record, self._nodes.shuffle_ports)
        if before.attempts:
            many = len({done.id.vertex for done in before.attempts})
            self._note(f"{many} stage(s) were finished by a former job manager: the job goes on from there")

    # ---- the course of things

    async def run(self) -> JobState:
        loop = asyncio.get_running_loop()
        offset_s = time.time() - loop.time()
        self._record = JobRecord(self.spec, self.machine, lambda at: int((at + offset_s) * 1000))
        self._finished: asyncio.Future[None] = loop.create_future()
        self._server = job_server(self._credentials, self._environ)
        self._umbilical = Umbilical(self._server, self, self._outputs)
        self._nodes = NodeLinks(
            str(self._container.attempt_id),
            on_failure=self.dispatch,
            on_started=self._launched,
            on_waiting=self._waits,
        )
        self._go_on()
        self._merging = self._make_merging()
        self._service = service_of(
            self.spec, self.conf, self.machine, self._server, self.access, dispatch=self.dispatch, note=self._note
        )
        self._rm = self._make_rm_link()
        self._ending = self._make_ending()
        await self._server.start()
        self._launch = TaskLaunch(
            self.spec, self.conf, self._credentials, self._server.address, self._output.shared_folder
        )
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._ending.dismiss, f"signal {number}")
        try:
            await self._converse()
            return self.state
        finally:
            await self._ending.close()
            if self._merging is not None:
                await self._merging.close()
            await self._nodes.close()
            await self._rm.close()
            await self._server.stop()
            if self._stages is not None:
                self._stages.close()

    async def _converse(self) -> None:
        host, port = self._server.address
        former = await self._ending.former()
        if former is not None:
            await self._rm.register(host, port, "")
            await self._ending.repeat(former)
            return
        async with TaskSet(self._ending.broke) as tasks:
            setup = tasks.start(self._ending.prepare())
            registered = await self._rm.register(host, port, "")
            log.info("%s registered, serving tasks and clients at %s:%d", self.spec.job_id, host, port)
            heartbeats = tasks.start(self._heartbeats())
            tasks.start(self._ticks())
            await asyncio.wait((setup, self._finished), return_when=asyncio.FIRST_COMPLETED)
            largest = convert.resource(registered.maximumCapability)
            problem = too_large(self._kind.sizes(self.spec.reduces, self.conf), largest)
            if problem is not None and not self._finished.done():
                self._ending.fail(problem)
            self.dispatch(ev.Tick())
            await self._finished
            await self._ending.conclude(heartbeats)

    async def _heartbeats(self) -> None:
        """An RM that is away is waited for: the tasks go on meanwhile."""
        patience_s = self.conf.get_duration_ms("yarn.resourcemanager.connect.max-wait.ms", 900_000) / 1000
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            try:
                await self._rm.run()
            except InvalidResourceRequest as error:
                # the largest node has gone: waiting might help, asking again does not
                self._ending.fail(f"the ResourceManager refuses what the job asks for: {error.message}")
                return
            except (RemoteException, RpcAuthenticationError) as error:
                self._ending.dismiss(str(error))
                return
            except RpcError as error:
                if self._rm.silent_s() > patience_s:
                    self._ending.dismiss(f"no ResourceManager for {patience_s:g} s: {error}")
                    return
                log.warning("%s", error)
                await asyncio.sleep(max(0.0, _RM_RETRY_S - (loop.time() - began)))

    async def _ticks(self) -> None:
        while True:
            await asyncio.sleep(_TICK_S)
            self.dispatch(ev.Tick())
            if self._merging is not None:
                self._merging.tick()
            if self._service is not None:
                self._service.tick()

    def _history(self, end: JobEnd) -> list[dict[str, Any]]:
        """As of now."""
        times = {"started_ms": self._started_ms, "finished_ms": int(time.time() * 1000)}
        shuffle = None
        if self._merging is not None:
            shuffle = self._merging.summary()
        elif self._kind.has_splits:
            shuffle = unmerged_summary(self.spec, self.conf)
        return list(self._record.history(end.state, **times, diagnostics=end.diagnostics, shuffle=shuffle))

    # ---- one way in, one way out

    def dispatch(self, event: ev.Event) -> list[ev.Decision]:
        is_for_mergers = self._merging is not None and self._merging.handle(event)
        decisions = [] if is_for_mergers else self.machine.handle(event, asyncio.get_running_loop().time())
        for decision in decisions:
            self._perform(decision)
        if self.machine.anomalies:
            for line in self.machine.anomalies:
                log.warning("%s", line)
            self.machine.anomalies.clear()
        for line in self.machine.notices.take():
            self._note(line)
        if self._merging is not None:
            self._merging.follow()
        if self._service is not None:
            self._service.follow()
        if self._stages is not None:
            self._stages.follow()
        if self._own_stages is not None:
            ordered = self._own_stages.follow(asyncio.get_running_loop().time())
            if ordered is not None:
                self.dispatch(ordered)
        self._umbilical.outputs_may_have_changed()
        wanted = self.machine.wanted() + (() if self._merging is None else self._merging.wanted)
        self._rm.wake_if_changed(wanted, self.machine.held.undecided())
        return decisions

    def _note(self, line: str) -> None:
        """For the user."""
        log.warning("%s", line)
        self._notices.append(line)
        self._notices_total += 1

    def _perform(self, decision: ev.Decision) -> None:
        match decision:
            case ev.Launch() | ev.LaunchMerger():
                self._start(decision)
            case ev.GiveTask():
                self._umbilical.give_task(decision.container, decision.attempt)
            case ev.GiveExit():
                self._umbilical.give_exit(decision.container)
            case ev.Release():
                self._rm.release(self._granted.give_back(decision.container))
            case ev.Stop():
                log.info("stopping %s: %s", decision.container, decision.reason)
                self._nodes.stop(NodeId.parse(decision.node), self._granted.id(decision.container))
            case ev.AskNode():
                self._nodes.ask(NodeId.parse(decision.node), self._granted.id(decision.container))
            case ev.Blacklist():
                log.warning("hosts avoided: +%s -%s", decision.additions, decision.removals)
                self._rm.blacklist(decision.additions, decision.removals)
            case ev.Finish():
                self._ending.end = JobEnd(decision.state, decision.diagnostics)
                if self._merging is not None:
                    self._merging.end()
                self._finished.set_result(None)
            case ev.AnswerCommit():
                pass  # the caller of dispatch answers

    def _start(self, decision: ev.Launch | ev.LaunchMerger) -> None:
        container = self._granted.take(decision.container)
        attempt = decision.attempt if isinstance(decision, ev.Launch) else None
        log.info("starting %s on %s for %s", decision.container, decision.node, attempt or "merging")
        context = (
            self._launch.merger_context() if attempt is None else self._launch.context(attempt, self._left.latest())
        )
        node = convert.node_id(container.nodeId)
        self._nodes.start(node, convert.container_id(container.id), container.container_token, context)

    def _waits(self, container: ContainerId) -> None:
        self.dispatch(ev.ContainerWaits(str(container)))

    def _launched(self, _: ContainerId) -> None:
        self._rm.expect_news()

    # ---- the ResourceManager's answers

    def _on_registered(self, response: pb.RegisterApplicationMasterResponse) -> None:
        self._granted.registered(response)
        if self._own_stages is not None:
            self._own_stages.registered(response)
        if self._service is not None:
            self._service.registered(response)

    def _on_response(self, response: pb.AllocateResponse) -> None:
        for token in response.nm_tokens:
            self._nodes.token(convert.node_id(token.nodeId), Token.from_pb(token.token))
        for event in self._granted.events(response):
            self.dispatch(event)
        if self._service is not None:
            self._service.hear(response)

    # ---- what the umbilical asks (JobView)

    @property
    def state(self) -> JobState:
        return self._ending.end.state

    def describe(self, attempt: AttemptId) -> job.TaskDescription:
        description = job.TaskDescription(
            attempt=job.AttemptRef(vertex=attempt.vertex, index=attempt.task, number=attempt.number),
            attempt_id=self._record.attempt_name(attempt),
        )
        self._kind.describe(description, self.spec, attempt, self._splits, self.machine.inputs(attempt.vertex))
        return description

    def output_of(self, attempt: AttemptId, node: str, host: str) -> tuple[str, str, int]:
        """Return the name of the output and where its shuffle service listens."""
        port = self._nodes.shuffle_ports.get(NodeId.parse(node), 0)
        return self._record.attempt_name(attempt), host, port

    def _outputs(self, vertex: int) -> Sequence[Completion]:
        """What the vertex may read, in the order it came and went."""
        merged = None if self._merging is None else self._merging.outputs(vertex)
        return self.machine.outputs_for(vertex) if merged is None else merged

    def note_counters(self, attempt: AttemptId, counters: CounterList) -> None:
        self._record.note_counters(attempt, counters)

    def note_phases(self, attempt: AttemptId, phases: dict[str, int]) -> None:
        self._record.note_phases(attempt, phases)

    def note_input(self, lines: list[str]) -> None:
        self._record.note_input(lines)

    def counters(self) -> CounterList:
        return self._record.counters()

    def exit_code(self) -> int:
        return self._record.exit_code(self.state)

    def diagnostics(self) -> str:
        return self._ending.end.diagnostics

    def notices(self) -> tuple[list[str], int]:
        """Return the latest notices, and how many there were in all."""
        return list(self._notices), self._notices_total

    # ---- parts

    def _make_merging(self) -> Merging | FlowMerging | None:
        job = JobToMerge(
            spec=self.spec,
            conf=self.conf,
            machine=self.machine,
            record=self._record,
            nodes=self._nodes,
            manager=self._container.attempt_id.attempt,
            token=token_of(self._credentials, JobTokenSecrets.kind, "job token"),
            clock=asyncio.get_running_loop().time,
            on_news=self._umbilical.outputs_may_have_changed,
        )
        if self.spec.flow is not None:
            return FlowMerging.of(job, self.spec.flow.plan)
        return Merging.of(job, folder=self._output.shared_folder, server=self._server, perform=self._perform)

    def _make_rm_link(self) -> ResourceManagerLink:
        return ResourceManagerLink(
            scheduler_address(self.conf, self._environ),
            str(self._container.attempt_id),
            token_of(self._credentials, AM_RM_TOKEN, "AMRMToken"),
            asks=lambda: self.machine.asks() + ([] if self._merging is None else self._merging.asks()),
            progress=self.machine.progress,
            left=self._left,
            reports=None if self._service is None else self._service.reports,
            on_registered=self._on_registered,
            on_response=self._on_response,
            heartbeat_s=self.conf.get_int("yarn.app.mapreduce.am.scheduler.heartbeat.interval-ms", 1000, minimum=1)
            / 1000,
            options=client_options(self.conf),
        )

    def _make_ending(self) -> Ending:
        window_ms = self.conf.get_duration_ms("yarn.app.mapreduce.am.job.committer.commit-window", minimum=1)
        return Ending(
            self._output,
            self._rm,
            self._nodes,
            commit_window_s=window_ms / 1000,
            is_over=lambda: application_is_over(self.conf, self.spec.application_id, self.user),
            dispatch=self.dispatch,
            history=self._history,
            extra=self._service,
            goes_on=bool(self._finished_before.attempts),
        )
