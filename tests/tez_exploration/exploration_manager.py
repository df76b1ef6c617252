"""A job manager around the service of an exploration, without a cluster."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from tests.tez_adapter.tez_driver import SMALL
from tests.tez_exploration.exploration_jobs import SPACE
from tez_adapter.core import events as ev
from tez_adapter.core.machine import JobMachine
from tez_adapter.exploration.service import ExplorationService
from tez_adapter.jobspec import Exploration, JobKind, JobSpec
from tez_adapter.kinds.exploration import ExplorationKind
from tez_adapter.master.access import JobAccess
from tez_adapter.protocol import ExplorationProtocol, JobClientProtocol
from yaqd.config import Configuration
from yaqd.ipc import Caller
from yaqd.model import ApplicationAttemptId, ApplicationId, ContainerId
from yaqd.proto import job_exploration_pb2 as pb
from yaqd.proto import job_pb2
from yaqd.proto.protocols import Method

TASK = Caller("me", None, "TOKEN", b"", "", ("127.0.0.1", 1))
OWNER = Caller("me", None, "SIMPLE", None, None, ("127.0.0.1", 1))
OTHER = Caller("another", None, "SIMPLE", None, None, ("127.0.0.1", 1))
TERMS = Exploration("accuracy", space=SPACE, epochs=4, slots=2, trials=6, policy="asha-promote")
Order = pb.TrialReportResponse


def container_id(task: int, number: int) -> ContainerId:
    return ContainerId(ApplicationAttemptId(ApplicationId(1, 1), 1), 100 * task + number + 2)


class World:
    """A job manager around the service."""

    def __init__(self, folder: Path, terms: Exploration = TERMS, job: int = 1, **conf: str) -> None:
        self.conf = Configuration.load(None, overrides=conf)
        name = f"job_1_{job:04d}"
        self.folder = f"file://{folder}/me/.training/{name}"
        staging = f"file://{folder}/me/.staging/{name}"
        self.spec = JobSpec(name, "j", "me", JobKind.EXPLORATION, conf, staging, exploration=terms)
        self.machine = JobMachine(ExplorationKind().plan(self.spec, self.conf, []))
        self.handlers: dict[str, Callable[[Any, Caller], Any]] = {}
        self.notes: list[str] = []
        self.finish: ev.Finish | None = None
        self.finished = asyncio.Event()
        access = JobAccess(self.conf, "me", lambda user: ())
        self.service = ExplorationService(
            self.spec,
            self.conf,
            self.machine,
            self,  # type: ignore[arg-type]
            access,
            dispatch=self.dispatch,
            note=self.notes.append,
        )
        #: the last order by slot
        self.heard: dict[tuple[int, int], int] = {}

    def register(self, method: Method[Any, Any], handler: Callable[[Any, Caller], Any]) -> None:
        self.handlers[method.name] = handler

    def dispatch(self, event: ev.Event) -> list[ev.Decision]:
        out = self.machine.handle(event, 0.0)
        self.finish = next((one for one in out if isinstance(one, ev.Finish)), self.finish)
        if self.finish is not None:
            self.finished.set()
        self.service.follow()
        return out

    async def call(self, method: Method[Any, Any], request: Any, caller: Caller = TASK) -> Any:
        answer = self.handlers[method.name](request, caller)
        return await answer if isinstance(answer, Awaitable) else answer

    def container(self, task: int) -> job_pb2.AttemptRef:
        name = str(container_id(task, len(self.machine.vertices[0].tasks[task].attempts)))
        self.dispatch(ev.ContainerAllocated(name, f"h{task}:1", f"h{task}", SMALL, 10))
        self.dispatch(ev.TaskRequested(name))
        attempt = self.machine.containers[name].attempt
        assert attempt is not None
        return job_pb2.AttemptRef(vertex=0, index=attempt.id.task, number=attempt.id.number)

    async def turn(self, slot: job_pb2.AttemptRef, wait_ms: int = 0) -> pb.SlotTurnResponse:
        request = pb.SlotTurnRequest(
            attempt=slot, host="h", heard=self.heard.get((slot.index, slot.number), 0), wait_ms=wait_ms
        )
        response: pb.SlotTurnResponse = await self.call(ExplorationProtocol.slotTurn, request)
        for order in response.orders:
            self.heard[slot.index, slot.number] = order.sequence
        return response

    async def next_trial(self, slot: job_pb2.AttemptRef) -> pb.TrialRef:
        (order,) = (await self.turn(slot, 5000)).orders
        assert order.action == pb.SlotOrder.BEGIN
        return order.trial

    async def begin(self, slot: job_pb2.AttemptRef, trial: pb.TrialRef) -> pb.TrialBeginResponse:
        begun: pb.TrialBeginResponse = await self.call(
            ExplorationProtocol.begin, pb.TrialBeginRequest(attempt=slot, trial=trial)
        )
        return begun

    async def report(
        self, slot: job_pb2.AttemptRef, trial: pb.TrialRef, iteration: int, value: float | None, **more: Any
    ) -> pb.TrialReportResponse:
        request = pb.TrialReportRequest(
            attempt=slot, trial=trial, iteration=iteration, value=value, can_checkpoint=True, **more
        )
        answer: pb.TrialReportResponse = await self.call(ExplorationProtocol.report, request)
        return answer

    async def keep(self, slot: job_pb2.AttemptRef, trial: pb.TrialRef, iteration: int, data: bytes) -> bool:
        request = pb.KeepCheckpointRequest(attempt=slot, trial=trial, iteration=iteration, checkpoint=data)
        return bool((await self.call(ExplorationProtocol.keepCheckpoint, request)).is_kept)

    async def over(self, slot: job_pb2.AttemptRef, trial: pb.TrialRef) -> None:
        ended = pb.TrialChangedRequest(attempt=slot, trial=trial, change=pb.TrialChangedRequest.ENDED)
        await self.call(ExplorationProtocol.trialChanged, ended)

    async def run_to_rung(self, slot: job_pb2.AttemptRef, value: float, data: bytes = b"state") -> pb.TrialRef:
        """Run the next trial of a slot to its first rung, where it is suspended with a checkpoint."""
        trial = await self.next_trial(slot)
        begun = await self.begin(slot, trial)
        assert not begun.HasField("checkpoint") and set(json.loads(begun.params)) == {"level", "speed"}
        assert (await self.report(slot, trial, 1, value)).order == Order.SUSPEND
        await self.keep(slot, trial, 1, data)
        await self.over(slot, trial)
        return trial

    def checkpoints(self) -> list[Path]:
        return list(Path(self.folder.removeprefix("file://"), "trials").iterdir())

    async def status(self, version: int = 0) -> pb.ExplorationStatusResponse:
        request = pb.ExplorationStatusRequest(version=version)
        found: pb.ExplorationStatusResponse = await self.call(JobClientProtocol.getExplorationStatus, request, OWNER)
        return found
