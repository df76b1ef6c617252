"""The steps of a data-parallel job, as its job manager serves them: states go out, partials come in.

States and partials are bytes here and nothing else. A driver's call waits until all partitions are computed, a worker's
until it has something to do; no call is held longer than it asked for.
"""

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from tez_adapter.core import training as core
from tez_adapter.training.evaluations import Evaluations
from yaqd.ipc.errors import IllegalArgument
from yaqd.proto import job_training_pb2 as pb

log = logging.getLogger(__name__)

_WAIT_MAX_S: Final = 10.0
_NO_WORK: Final = pb.WorkResponse(action=pb.WorkResponse.WAIT)
_LEAVE: Final = pb.WorkResponse(action=pb.WorkResponse.LEAVE)


class Steps:
    def __init__(
        self,
        machine: core.TrainingMachine,
        partitions: int,
        evaluations: Evaluations | None,
        *,
        bytes_max: int,
        on_leave: Callable[[str], None],
    ) -> None:
        """`evaluations`: of a driver that calls them from within. `bytes_max`: of a state, and of a step's partials.
        `on_leave` hears of workers that are told to go."""
        self._machine, self._partitions = machine, partitions
        self.evaluations = evaluations
        self._bytes_max, self._on_leave = bytes_max, on_leave
        self._clock = asyncio.get_running_loop().time
        #: of the step under way, or the last one: its number among all, its place in the job, its state
        self._step = -1
        self._iteration = -1
        self._state = b""
        self._version = ""
        self._partials: dict[int, bytes] = {}
        self._partials_bytes = 0
        self._answer: Sequence[bytes] | None = None
        self._driver: asyncio.Future[None] | None = None
        self._waiting: dict[str, asyncio.Future[pb.WorkResponse]] = {}
        #: processor time of the workers for the step under way, and for the last one, us
        self._cpu_us = 0
        self.step_cpu_us = 0

    # ---- the driver

    def evaluate(self, request: pb.EvaluateRequest) -> pb.EvaluateResponse | Awaitable[pb.EvaluateResponse]:
        if request.HasField("state"):
            self._begin(request.iteration, request.state)
        elif request.iteration != self._iteration:
            return pb.EvaluateResponse(wants_state=True)
        if self._answer is not None or not request.wait_ms:
            return self._evaluated()
        if self._driver is None or self._driver.done():
            self._driver = asyncio.get_running_loop().create_future()
        return self._later(self._driver, min(_WAIT_MAX_S, request.wait_ms / 1000))

    async def _later(self, done: "asyncio.Future[None]", wait_s: float) -> pb.EvaluateResponse:
        await asyncio.wait((done,), timeout=wait_s)
        return self._evaluated()

    def _evaluated(self) -> pb.EvaluateResponse:
        return pb.EvaluateResponse(is_done=self._answer is not None, partials=self._answer or ())

    def _begin(self, iteration: int, state: bytes) -> None:
        if len(state) > self._bytes_max:
            raise IllegalArgument(f"a state of {len(state)} bytes: {self._bytes_max} fit (yaq.ml.state.bytes-max)")
        version = hashlib.sha256(state).hexdigest()
        if iteration == self._iteration and version == self._version:
            return  # the same call again
        self._iteration, self._version, self._state = iteration, version, state
        self._partials, self._partials_bytes, self._cpu_us = {}, 0, 0
        known = None if self.evaluations is None else self.evaluations.find(iteration, version)
        self._answer = known
        if known is None:
            self._step += 1
            self._do(self._machine.handle(core.StepAsked(self._step), self._clock()))

    # ---- workers

    def work(self, worker: str, request: pb.WorkRequest) -> pb.WorkResponse | Awaitable[pb.WorkResponse]:
        if request.partials:
            self._take(worker, request)
        if not request.wait_ms:
            return _NO_WORK  # more partials follow
        former = self._waiting.get(worker)
        if former is not None and not former.done():
            former.set_result(_NO_WORK)
        future: asyncio.Future[pb.WorkResponse] = asyncio.get_running_loop().create_future()
        self._waiting[worker] = future
        self._do(self._machine.handle(core.WorkerReady(worker), self._clock()))
        if future.done():
            self._waiting.pop(worker, None)
            return future.result()
        return self._held(worker, future, min(_WAIT_MAX_S, request.wait_ms / 1000))

    async def _held(self, worker: str, future: "asyncio.Future[pb.WorkResponse]", wait_s: float) -> pb.WorkResponse:
        await asyncio.wait((future,), timeout=wait_s)
        if self._waiting.get(worker) is future:
            del self._waiting[worker]
        return future.result() if future.done() else _NO_WORK

    def _take(self, worker: str, request: pb.WorkRequest) -> None:
        if request.step == self._step and self._answer is None:
            for partial in request.partials:
                if 0 <= partial.partition < self._partitions and partial.partition not in self._partials:
                    self._partials[partial.partition] = partial.value
                    self._partials_bytes += len(partial.value)
            if self._partials_bytes > self._bytes_max:
                raise IllegalArgument(
                    f"the partials of a step have more than {self._bytes_max} bytes (yaq.ml.state.bytes-max)"
                )
            self._cpu_us += max(0, request.cpu_us)
        partitions = tuple(partial.partition for partial in request.partials)
        self._do(self._machine.handle(core.PartialsCame(worker, request.step, partitions), self._clock()))

    def state(self, version: str) -> pb.PullStateResponse:
        return pb.PullStateResponse(state=self._state if version == self._version else None)

    def under_way(self, worker: str) -> str:
        """Say in words what a worker computes at present; "" where it is nothing."""
        given = self._machine.given(worker)
        if not given or self._answer is not None:
            return ""
        which = f"partition {given[0]}" if len(given) == 1 else f"partitions {', '.join(map(str, given))}"
        return f"{which} in iteration {self._iteration + 1}"

    def lost(self, worker: str) -> None:
        waiting = self._waiting.pop(worker, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(_LEAVE)
        self._do(self._machine.handle(core.WorkerGone(worker), self._clock()))

    def want(self, workers: int) -> None:
        self._do(self._machine.handle(core.WorkersWanted(workers), self._clock()))

    def tick(self) -> None:
        self._do(self._machine.handle(core.TimePassed(), self._clock()))

    # ---- decisions

    def _do(self, decisions: Sequence[core.Decision]) -> None:
        for decision in decisions:
            match decision:
                case core.GiveStep():
                    self._give(decision)
                case core.GiveLeave():
                    self._on_leave(decision.worker)
                    self._reply(decision.worker, _LEAVE)
                case core.StepDone():
                    self._done()

    def _give(self, decision: core.GiveStep) -> None:
        self._reply(
            decision.worker,
            pb.WorkResponse(
                action=pb.WorkResponse.STEP,
                step=decision.step,
                partitions=decision.partitions,
                version=self._version,
                keep=decision.keep,
                iteration=self._iteration,
            ),
        )

    def _reply(self, worker: str, response: pb.WorkResponse) -> None:
        waiting = self._waiting.get(worker)
        if waiting is not None and not waiting.done():
            waiting.set_result(response)

    def _done(self) -> None:
        if self._answer is not None:
            return  # of a driver that is lost; the one that was run again is answered from what is known
        self._answer = [self._partials[partition] for partition in range(self._partitions)]
        self._partials = {}
        self.step_cpu_us = self._cpu_us
        if self.evaluations is not None:
            self.evaluations.add(self._iteration, self._version, self._answer)
        if self._driver is not None and not self._driver.done():
            self._driver.set_result(None)
