"""A worker of a data-parallel training job: holds partitions in memory, and steps them when the job manager says so."""

import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

from tez_adapter.jobspec import Training
from tez_adapter.protocol import TrainingProtocol
from tez_adapter.tasks.attempt import TaskAttempt
from tez_adapter.tasks.runners import Workplace
from tez_adapter.tasks.shuffle_input import NoLongerWanted
from tez_adapter.training.calls import call
from tez_adapter.training.late import LateCalls
from tez_adapter.training.settings import TrainingSettings
from tez_adapter.training.states import NodeStates
from yaqd.ml import IterativeJob, Partition
from yaqd.ml.driving import TrainingError, call_load, call_step
from yaqd.proto import job_training_pb2 as pb
from yaqd.storage import StorageError
from yaqd.storage.seekable import open_seekable

_WAIT_MS: Final = 5000
#: of partials in one message
_BYTES_PER_CALL: Final = 32 << 20


class PartitionWorker:
    def __init__(self, attempt: TaskAttempt, at: Workplace, job: IterativeJob) -> None:
        self._attempt, self._at, self._job = attempt, at, job
        self._terms = attempt.spec.training or Training()
        self._states = NodeStates(attempt.local_folders()[0], self._pull)
        #: partitions by index
        self._data: dict[int, Any] = {}
        self._late = LateCalls(TrainingSettings.read(attempt.conf).step_timeout_s, self._tell_late).start()

    def run(self) -> None:
        """Work until it is not wanted any more: NoLongerWanted."""
        answer = self._ask()
        while True:
            if answer.action == pb.WorkResponse.LEAVE:
                raise NoLongerWanted
            answer = self._step(answer) if answer.action == pb.WorkResponse.STEP else self._ask()

    def _ask(self) -> pb.WorkResponse:
        return self._call(pb.WorkRequest(attempt=self._attempt.ref, wait_ms=_WAIT_MS))

    def _step(self, order: pb.WorkResponse) -> pb.WorkResponse:
        frame = self._states.get(order.version)
        if frame is None:
            return self._ask()
        for index in set(self._data) - set(order.keep):
            del self._data[index]
        for index in order.partitions:
            if index not in self._data:
                self._data[index] = self._load(index)
        began = time.process_time()
        partials = []
        for index in order.partitions:
            iteration = order.iteration + 1
            with self._late.watched(f"{self._named}.step() on partition {index} in iteration {iteration}"):
                value = call_step(self._job, frame, index, self._data[index], iteration)
            partials.append(pb.Partial(partition=index, value=value))
            self._attempt.moved()
        return self._hand_in(order.step, partials, round(1e6 * (time.process_time() - began)))

    def _load(self, index: int) -> Any:
        terms, conf = self._terms, self._attempt.conf
        partition = Partition.of(
            index, terms.partitions, terms.data, terms.seed, opener=lambda path: open_seekable(path, conf)
        )
        try:
            with self._late.watched(f"{self._named}.load() on partition {index}"):
                return call_load(self._job, partition)
        except TrainingError as error:
            if isinstance(error.__context__, OSError | MemoryError | StorageError):
                raise StorageError(str(error)) from None  # another node, or another time, may fare better
            raise

    def _hand_in(self, step: int, partials: Sequence[pb.Partial], cpu_us: int) -> pb.WorkResponse:
        """The last message asks what to do next."""
        *former, last = _packed(partials)
        for group in former:
            self._call(pb.WorkRequest(attempt=self._attempt.ref, step=step, partials=group))
        request = pb.WorkRequest(attempt=self._attempt.ref, step=step, partials=last, cpu_us=cpu_us, wait_ms=_WAIT_MS)
        return self._call(request)

    @property
    def _named(self) -> str:
        return type(self._job).__name__

    def _tell_late(self, line: str) -> None:
        """In the watching thread, with a connection of its own."""
        with self._at.connect() as client:
            client.call(TrainingProtocol.work, pb.WorkRequest(attempt=self._attempt.ref, late=line), idempotent=True)

    def _pull(self, version: str) -> bytes | None:
        request = pb.PullStateRequest(attempt=self._attempt.ref, version=version)
        response = self._at.client.call(TrainingProtocol.pullState, request, idempotent=True)
        return response.state if response.HasField("state") else None

    def _call(self, request: pb.WorkRequest) -> pb.WorkResponse:
        return call(self._at.client, TrainingProtocol.work, request)


def _packed(partials: Sequence[pb.Partial]) -> Iterator[list[pb.Partial]]:
    """One group at least."""
    group: list[pb.Partial] = []
    size = 0
    for partial in partials:
        if group and size + len(partial.value) > _BYTES_PER_CALL:
            yield group
            group, size = [], 0
        group.append(partial)
        size += len(partial.value)
    yield group
