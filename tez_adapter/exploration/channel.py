"""How the reports of a trial reach its job manager: each waits until it is stored and decided.

So what becomes of a trial depends on its curve, and not on when its reports arrive. A report of an epoch that was
stored already, by an earlier process of the trial, is answered here.
"""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Final, NoReturn, TypeVar

from google.protobuf.message import Message

from tez_adapter.exploration.nursery import group_memory_mb
from tez_adapter.protocol import ExplorationProtocol
from yaqd.ipc import BlockingRpcClient, RemoteException, RpcError
from yaqd.ml import Said
from yaqd.ml.channel import back_text, made
from yaqd.ml.trial import trial as process
from yaqd.model.endings import as_utf8
from yaqd.proto import job_exploration_pb2 as pb
from yaqd.proto import job_pb2
from yaqd.proto.protocols import Method

_METRICS_MAX: Final = 32
_NAME_CHARS_MAX: Final = 100
_INT64_MAX: Final = (1 << 63) - 1
#: its job manager is gone
_EXIT_LOST: Final = 1
_LOSS: Final = "loss"

Q = TypeVar("Q", bound=Message)
A = TypeVar("A", bound=Message)
MakeCheckpoint = Callable[[], bytes]


class SlotChannel:
    """A `yaqd.ml.Channel`. Its `report` waits for the job manager."""

    def __init__(
        self,
        client: BlockingRpcClient,
        attempt: job_pb2.AttemptRef,
        trial: pb.TrialRef,
        begun: pb.TrialBeginResponse,
        metric: str,
        *,
        epochs: int,
        cores: float,
        checkpoint_bytes_max: int,
    ) -> None:
        """`begun`: the job manager's answer to the trial's begin. `metric`: the name of the one that counts.

        `epochs`: a program that has made so many reports without it is told of to the job manager.
        """
        self._client, self._attempt, self._trial, self._metric = client, attempt, trial, metric
        self._former = begun.checkpoint if begun.HasField("checkpoint") else None
        #: iterations up to here are stored
        self._known = begun.iteration if begun.HasField("iteration") else -_INT64_MAX - 1
        self._last: int | None = begun.checkpoint_iteration if self._former is not None else None
        self._go_on, self._end = Said(cores), Said(cores, stop=True)
        self._bytes_max = checkpoint_bytes_max
        self._is_over = self._said_back = False
        #: reports without the metric
        self._absent, self._epochs = 0, epochs
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._since = time.monotonic()

    def report(
        self, iteration: int, loss: float | None, checkpoint: MakeCheckpoint | None, metrics: Mapping[str, float]
    ) -> Said:
        """Return once the report is stored and the trial may go on, or is to stop. A suspended one does not return."""
        if os.getpid() != self._pid:
            return self._go_on  # a copy that the program has forked: the connection is not its own
        with self._lock:
            if self._is_over:
                return self._end
            if self._last is not None and iteration <= self._last and not self._said_back:
                self._said_back = True
                _say_back(iteration, self._last)
            self._last = iteration
            named = dict(metrics) if loss is None else {**metrics, _LOSS: loss}
            if self._metric not in named:
                self._leave_out(iteration, named)
                return self._end if self._is_over else self._go_on
            if iteration > self._known:
                self._known = iteration
                self._send(iteration, named, checkpoint)
            self._since = time.monotonic()
            return self._end if self._is_over else self._go_on

    def last_checkpoint(self) -> bytes | None:
        """Return what the program goes on from; None: it begins anew."""
        return self._former

    # ---- what a report leads to

    def _send(self, iteration: int, named: Mapping[str, float], checkpoint: MakeCheckpoint | None) -> None:
        took_s = time.monotonic() - self._since
        request = pb.TrialReportRequest(
            attempt=self._attempt,
            trial=self._trial,
            iteration=iteration,
            value=named[self._metric],
            took_us=round(1e6 * took_s),
            can_checkpoint=checkpoint is not None,
            memory_mb=group_memory_mb(os.getpid()),
        )
        _add_metrics(request, named)
        if process.drawn:
            request.drawn = json.dumps(process.drawn)
        self._follow(self._call(ExplorationProtocol.report, request), checkpoint)

    def _follow(self, answer: pb.TrialReportResponse, checkpoint: MakeCheckpoint | None) -> None:
        """Do what the job manager wants."""
        while answer.order in (pb.TrialReportResponse.FREEZE, pb.TrialReportResponse.SUSPEND):
            if answer.order == pb.TrialReportResponse.SUSPEND and checkpoint is not None and self._keep(checkpoint):
                self._leave()
            # also where no checkpoint could be kept: what was computed is not lost while there is room
            answer = self._stop_in_place()
        if answer.order == pb.TrialReportResponse.LEAVE:
            self._leave()
        if checkpoint is not None and answer.wants_checkpoint:
            self._keep(checkpoint)
        self._is_over = answer.order == pb.TrialReportResponse.STOP

    def _stop_in_place(self) -> pb.TrialReportResponse:
        """Return what is wanted when the process group goes on."""
        _flush()
        os.killpg(0, signal.SIGSTOP)  # this process stands still here
        request = pb.TrialWokenRequest(attempt=self._attempt, trial=self._trial)
        return self._call(ExplorationProtocol.woken, request)

    def _keep(self, checkpoint: MakeCheckpoint) -> bool:
        """Make a checkpoint; return whether it is kept."""
        data = made(checkpoint)
        if len(data) > self._bytes_max:
            print(f"yaqd.ml: a checkpoint of {len(data)} bytes is not kept: {self._bytes_max} fit", file=sys.stderr)
            return False
        request = pb.KeepCheckpointRequest(
            attempt=self._attempt, trial=self._trial, iteration=self._known, checkpoint=data
        )
        return self._call(ExplorationProtocol.keepCheckpoint, request).is_kept

    def _leave_out(self, iteration: int, named: Mapping[str, float]) -> None:
        """Tell the job manager of the first report without the metric, and when there were as many as epochs.

        One that reports its metric now and then does nothing wrong.
        """
        self._absent += 1
        if self._absent not in (1, self._epochs):
            return
        request = pb.TrialReportRequest(
            attempt=self._attempt, trial=self._trial, iteration=iteration, left_out=self._absent
        )
        _add_metrics(request, named)
        self._follow(self._call(ExplorationProtocol.report, request), None)

    def _call(self, method: Method[Q, A], request: Q) -> A:
        """Without its job manager a trial ends: another process takes it up."""
        try:
            return self._client.call(method, request, idempotent=True)
        except (RpcError, RemoteException) as error:
            print(f"yaqd.ml: the trial ends, as its job manager is gone: {error}", file=sys.stderr, flush=True)
            os._exit(_EXIT_LOST)

    @staticmethod
    def _leave() -> NoReturn:
        """End at once: nothing of the program's may keep a suspended trial."""
        _flush()
        os._exit(0)


def _add_metrics(request: pb.TrialReportRequest, named: Mapping[str, float]) -> None:
    for name, value in list(named.items())[:_METRICS_MAX]:
        request.metrics.add(name=as_utf8(name)[:_NAME_CHARS_MAX], value=value)


def _flush() -> None:
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        pass  # the program has closed them


def _say_back(iteration: int, last: int) -> None:
    print(f"yaqd.ml: {back_text(iteration, last)}", file=sys.stderr)
