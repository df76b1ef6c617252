"""How the reports of a training program reach its job manager.

A report is put into a short queue and answered with what the job manager said last. A thread empties the queue ten
times a second, over a connection of its own. Of more reports than fit between two of its turns the latest are sent.
"""

import logging
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Final

from tez_adapter.jobspec import Training
from tez_adapter.protocol import TrainingProtocol
from yaqd.ipc import BlockingRpcClient, RemoteException, RpcError
from yaqd.ml import Said
from yaqd.ml.channel import made
from yaqd.model.endings import as_utf8
from yaqd.proto import job_pb2
from yaqd.proto import job_training_pb2 as pb

log = logging.getLogger(__name__)

_EVERY_S: Final = 0.1
#: without a report the job manager is asked for news so often
_QUIET_S: Final = 1.0
#: reports of one message: a window of the predictors is no longer
_POINTS_MAX: Final = 64
_METRICS_MAX: Final = 32
_NAME_CHARS_MAX: Final = 100

#: iteration, loss, metrics, epoch s
_Point = tuple[int, float | None, Mapping[str, float], float]
_INT64_MAX: Final = (1 << 63) - 1


class JobManagerChannel:
    """A `yaqd.ml.Channel`. Its `report` never blocks and never fails."""

    def __init__(
        self,
        connect: Callable[[], BlockingRpcClient],
        attempt: job_pb2.AttemptRef,
        begun: pb.TrainingBeginResponse,
        terms: Training,
        *,
        checkpoint_bytes_max: int,
        on_iteration: Callable[[int], None] = lambda iteration: None,
    ) -> None:
        """`begun`: the job manager's answer to the attempt's begin. `on_iteration` hears of the latest now and then."""
        self._connect, self._attempt, self._terms = connect, attempt, terms
        self._bytes_max = checkpoint_bytes_max
        self._on_iteration = on_iteration
        self._former = begun.checkpoint if begun.HasField("checkpoint") else None
        self._said = Said(begun.cores)
        self._points: deque[_Point] = deque(maxlen=_POINTS_MAX)
        self._first: _Point | None = None
        self._reports = self._sent = 0
        #: what the next report must be later than; None: the program has been told of one that is not
        self._last: int | None = begun.checkpoint_iteration if self._former is not None else -_INT64_MAX
        self._wants_checkpoint = False
        #: the user has stopped the job, and the program has been told
        self.is_told_to_stop = False
        self._is_stopped = False
        #: made and not sent yet
        self._checkpoint: tuple[int, bytes] | None = None
        self._client: BlockingRpcClient | None = None
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="training reports", daemon=True)
        self._thread.start()

    def report(
        self,
        iteration: int,
        loss: float | None,
        checkpoint: Callable[[], bytes] | None,
        metrics: Mapping[str, float],
    ) -> Said:
        point = (iteration, loss, metrics, time.time())
        if (last := self._last) is not None:
            if iteration > last:
                self._last = iteration
            else:
                self._last = None
                _say_back(iteration, last)
        if self._reports:
            self._points.append(point)
        else:
            self._first = point  # what a loss is later is told by this one
        self._reports += 1
        said = self._said
        self.is_told_to_stop = self._is_stopped
        if not said.stop and self._is_reached(iteration, loss):
            said = self._said = Said(said.cores, stop=True)
        if checkpoint is not None and (self._wants_checkpoint or said.stop):
            self._make(iteration, checkpoint)
        return said

    def last_checkpoint(self) -> bytes | None:
        return self._former

    def close(self) -> None:
        """Send what has not been sent."""
        self._done.set()
        self._thread.join()
        self._send()
        if self._client is not None:
            self._client.close()

    def _is_reached(self, iteration: int, loss: float | None) -> bool:
        """Known here at once, so that where a job ends does not depend on when its reports arrive."""
        target, limit = self._terms.target, self._terms.iterations
        return (target is not None and loss is not None and loss <= target) or 0 < limit <= iteration

    def _make(self, iteration: int, checkpoint: Callable[[], bytes]) -> None:
        self._wants_checkpoint = False
        data = made(checkpoint)
        if len(data) > self._bytes_max:
            print(f"yaqd.ml: a checkpoint of {len(data)} bytes is not kept: {self._bytes_max} fit", file=sys.stderr)
            return
        self._checkpoint = iteration, data

    # ---- the thread

    def _run(self) -> None:
        asked_at = time.monotonic()
        while not self._done.wait(_EVERY_S):
            now = time.monotonic()
            if self._first is not None or self._points or self._checkpoint is not None or now - asked_at >= _QUIET_S:
                asked_at = now
                self._send()

    def _send(self) -> None:
        request = pb.TrainingReportRequest(attempt=self._attempt, cpu_ms=round(1000 * time.process_time()))
        points: list[_Point] = []
        if self._first is not None:
            points.append(self._first)
            self._first = None
        while self._points and len(points) < _POINTS_MAX:
            points.append(self._points.popleft())
        for point in points:
            _put(request, point)
        checkpoint = self._checkpoint
        if checkpoint is not None:
            request.checkpoint_iteration, request.checkpoint = _bounded(checkpoint[0]), checkpoint[1]
        request.dropped = max(0, self._reports - self._sent - len(points) - len(self._points))
        try:
            if self._client is None:
                self._client = self._connect()
            response = self._client.call(TrainingProtocol.report, request, idempotent=True)
        except (RpcError, RemoteException) as error:
            log.warning("a report did not reach the job manager: %s", error)
            self._points.extendleft(reversed(points[: _POINTS_MAX - len(self._points)]))
            return
        self._sent += len(points)
        if checkpoint is self._checkpoint:
            self._checkpoint = None
        self._hear(response)
        if points:
            self._on_iteration(points[-1][0])

    def _hear(self, response: pb.TrainingReportResponse) -> None:
        said = self._said
        if response.cores != said.cores or response.stop > said.stop:
            self._said = Said(response.cores, stop=said.stop or response.stop)
        self._is_stopped = self._is_stopped or response.stop
        self._wants_checkpoint = response.wants_checkpoint and self._checkpoint is None


def _put(request: pb.TrainingReportRequest, point: _Point) -> None:
    iteration, loss, metrics, at_s = point
    message = request.points.add(iteration=_bounded(iteration), at_ms=int(1000 * at_s))
    if loss is not None:
        message.loss = loss
    for name, value in list(metrics.items())[:_METRICS_MAX]:
        message.metrics.add(name=as_utf8(name)[:_NAME_CHARS_MAX], value=value)


def _say_back(iteration: int, last: int) -> None:
    """Tell the program's log, once. A report that is made twice is no mistake."""
    print(
        f"yaqd.ml: iteration {_bounded(iteration)} follows {_bounded(last)}: numbers must rise; others are left out",
        file=sys.stderr,
    )


def _bounded(iteration: int) -> int:
    return max(-_INT64_MAX, min(iteration, _INT64_MAX))
