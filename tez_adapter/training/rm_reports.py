"""What a training job tells the ResourceManager of itself, one batch a heartbeat, and what it is told about its cores.

A ResourceManager that does not know training gets nothing, and orders nothing. Losses have their iterations, so that an
answer that is repeated counts none twice.
"""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from tez_adapter.jobspec import Training
from tez_adapter.training.curve import counts
from yaqd.model.training import WINDOW, ConvergenceClass, TrainingReport
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.training import cores_order, training_report_pb
from yaqd.proto.words import TRAINING

#: losses that wait for a heartbeat; a window of the predictors is no longer
_LOSSES_MAX: Final = 60
#: batches of the latest losses: of a program that has a loss now and then only the last ones are told again
_LATEST_MAX: Final = 4
#: iterations whose processor time counts alike
_CPU_SHARE: Final = 0.2


class RmReports:
    def __init__(self, terms: Training) -> None:
        self._terms = terms
        #: what the ResourceManager and this job manager both understand
        self.is_understood = False
        self._losses: deque[tuple[int, float]] = deque(maxlen=_LOSSES_MAX)
        #: batches of losses that are told before the others, a message for each: the first loss, and what was before
        self._ahead: deque[list[tuple[int, float]]] = deque()
        self._has_first = False
        #: that the last message carried, and whether these were a batch ahead of the others
        self._carried: list[tuple[int, float]] = []
        self._carried_ahead = False
        self._sequence = 0
        self._wishes_told = False
        #: of an iteration, all processes together; None: not known yet
        self.cpu_ms: float | None = None
        #: that the ResourceManager ordered last; None: as many as the job can use
        self.cores: float | None = None
        self._ordered = 0

    @property
    def waits(self) -> bool:
        """Whether the ResourceManager orders cores, and has not ordered any yet."""
        return self.is_understood and not self._ordered

    # ---- to the ResourceManager

    @property
    def words(self) -> tuple[str, ...]:
        return (TRAINING,)

    def registered(
        self,
        response: pb.RegisterApplicationMasterResponse,
        landmarks: Sequence[tuple[int, float]] = (),
        latest: Sequence[tuple[int, float]] = (),
    ) -> None:
        """Begin with a ResourceManager that knows nothing of the job; the losses are those for `recall`."""
        self.is_understood = TRAINING in response.yaq_understands
        self._ordered = 0
        self._wishes_told = False
        self.recall(landmarks, latest)

    def note(self, iteration: int, loss: float | None) -> None:
        """Note an iteration that is done, later than those before it."""
        if loss is None:
            return
        if self._has_first or not counts(iteration, loss):
            self._losses.append((iteration, loss))
        else:
            self._has_first = True
            self._ahead.append([(iteration, loss)])
            self._losses.clear()  # what came before was no number, or too large

    def note_cpu(self, ms: float) -> None:
        """Note the processor time of one iteration."""
        self.cpu_ms = ms if self.cpu_ms is None else self.cpu_ms + _CPU_SHARE * (ms - self.cpu_ms)

    def news(self) -> pb.YaqReports | None:
        """Return what is new, from now on taken as told; None: nothing."""
        if not self.is_understood or (self._wishes_told and not self._losses and not self._ahead):
            return None
        carried = self._carried = self._next()
        self._sequence += 1
        first = carried[0][0] if carried else 0
        by_iteration = dict(carried)
        report = TrainingReport(
            sequence=self._sequence,
            first_iteration=max(0, first),
            losses=tuple(by_iteration.get(i, math.nan) for i in range(first, carried[-1][0] + 1)) if carried else (),
            cpu_ms_per_iteration=self.cpu_ms,
        )
        if not self._wishes_told:
            report = self._with_wishes(report)
        self._wishes_told = True
        return pb.YaqReports(training=training_report_pb(report))

    def _next(self) -> list[tuple[int, float]]:
        """Take the losses of the next message."""
        self._carried_ahead = bool(self._ahead)
        if not self._ahead:
            carried = _latest_run(list(self._losses))
        else:
            carried = self._ahead.popleft()
            if self._ahead or not self._losses or self._losses[-1][0] - carried[0][0] >= WINDOW:
                return carried
            carried = [*carried, *self._losses]
        self._losses.clear()
        return carried

    def _with_wishes(self, report: TrainingReport) -> TrainingReport:
        terms = self._terms
        return replace(
            report,
            convergence=ConvergenceClass[terms.curve.upper()],
            target=terms.target,
            weight=terms.weight,
            min_milli=round(1000 * terms.min_cores) or None,
            max_milli=round(1000 * terms.max_cores),
            iterations_expected=terms.iterations or None,
            partitions=terms.partitions or None,
        )

    def recall(self, landmarks: Sequence[tuple[int, float]], latest: Sequence[tuple[int, float]]) -> None:
        """Tell anew what a ResourceManager that heard all of the job would know, as `Curve` keeps it.

        Else what it has fallen by would be counted from where another attempt, or another ResourceManager, began.
        """
        told = _batches(latest)[-_LATEST_MAX:]
        before = [loss for loss in landmarks if not told or loss[0] < told[0][0][0]]
        self._ahead = deque([*_batches(before), *told])
        self._has_first = bool(self._ahead)
        self._losses.clear()
        self._carried = []

    def forget(self) -> None:
        """Tell again what was told last: the ResourceManager may not have heard it."""
        self._wishes_told = False
        if self._carried_ahead and self._carried:
            self._ahead.appendleft(self._carried)
            self._carried = []
        self._losses.extendleft(reversed(self._carried[: _LOSSES_MAX - len(self._losses)]))
        self._carried = []

    # ---- from it

    def hear(self, response: pb.AllocateResponse) -> bool:
        """Return whether the cores changed."""
        if not response.HasField("yaq_orders") or not response.yaq_orders.HasField("cores"):
            return False
        order = cores_order(response.yaq_orders.cores)
        if order.sequence <= self._ordered:
            return False
        self._ordered = order.sequence
        before, self.cores = self.cores, None if order.milli is None else order.milli / 1000
        return self.cores != before


def _batches(losses: Sequence[tuple[int, float]]) -> list[list[tuple[int, float]]]:
    """In as few as can be, each of no more than `WINDOW` iterations."""
    batches: list[list[tuple[int, float]]] = []
    for loss in losses:
        if batches and loss[0] - batches[-1][0][0] < WINDOW:
            batches[-1].append(loss)
        else:
            batches.append([loss])
    return batches


def _latest_run(losses: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """The last ones without a gap that is longer than a message has losses."""
    for place in range(len(losses) - 1, 0, -1):
        if losses[-1][0] - losses[place - 1][0] >= _LOSSES_MAX * 2:
            return losses[place:]
    return losses
