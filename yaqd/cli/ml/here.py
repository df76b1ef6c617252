"""A training job in this process, without a cluster: the same methods, states and frames, so the same model to the bit.

One thread computes, as in a worker: sums of more threads depend on how many there are.
"""

import math
import runpy
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from yaqd.mapreduce import JobError
from yaqd.mapreduce.loading import user_traceback
from yaqd.ml import IterativeJob, Partition, Said, set_channel
from yaqd.ml.driving import TrainingError, call_load, call_step, drive
from yaqd.ml.iterative import Opener, open_here
from yaqd.ml.reporting import usable_cores
from yaqd.ml.threads import one_thread

#: a program may report a million times
POINTS_MAX: Final = 100_000


@dataclass(frozen=True, slots=True)
class Point:
    """One report."""

    iteration: int
    loss: float | None
    #: since the begin
    time_s: float
    metrics: Mapping[str, float]


class CurveKeeper:
    """A channel that keeps the curve, tells of each report, and says stop where a cluster would.

    Of more reports than `POINTS_MAX` every second one goes. What is wrong with losses is noted, once for each kind.
    """

    def __init__(
        self,
        iterations: int = 0,
        *,
        target: float | None = None,
        heard: Callable[[Point], None] = lambda point: None,
        note: Callable[[str], None] = lambda line: None,
    ) -> None:
        """`iterations`: the last that is wanted; 0 is without end. `target`: a loss that ends it. `heard` is told of
        each report, `note` of what a cluster would leave out."""
        self.points: list[Point] = []
        self.reports = 0
        self._limit, self._target = iterations, target
        self._heard = heard
        self._note = note
        self._noted: set[str] = set()
        self._begin = time.monotonic()

    def report(
        self,
        iteration: int,
        loss: float | None,
        checkpoint: Callable[[], bytes] | None,
        metrics: Mapping[str, float],
    ) -> Said:
        """Keep a report."""
        point = Point(iteration, loss, time.monotonic() - self._begin, dict(metrics))
        self._judge(point)
        self.reports += 1
        if len(self.points) >= POINTS_MAX:
            del self.points[1::2]  # the first stays: a curve is shown from its begin
        self.points.append(point)
        self._heard(point)
        is_reached = self._target is not None and loss is not None and loss <= self._target
        return Said(usable_cores(), stop=is_reached or 0 < self._limit <= iteration)

    def last_checkpoint(self) -> bytes | None:
        """Return None: here every run begins anew."""
        return None

    @property
    def losses(self) -> list[float]:
        """Losses that are finite numbers, in the order in which they came."""
        return [point.loss for point in self.points if point.loss is not None and math.isfinite(point.loss)]

    def _judge(self, point: Point) -> None:
        before = self.points[-1].iteration if self.points else None
        if point.loss is None:
            self._once("none", f"no loss from iteration {point.iteration} on: such a job is not scheduled by quality")
        elif not math.isfinite(point.loss):
            self._once("odd", f"the loss of iteration {point.iteration} is {point.loss}: such reports are left out")
        if before is not None and point.iteration <= before:
            self._once("back", f"iteration {point.iteration} follows {before}: numbers must rise; others are left out")

    def _once(self, kind: str, line: str) -> None:
        if kind not in self._noted:
            self._noted.add(kind)
            self._note(line)


def train_class(job: IterativeJob, channel: CurveKeeper, *, opener: Opener = open_here) -> bytes:
    """Train a data-parallel job to its end; return the frame of its last state. TrainingError: a method failed."""
    with _channel(channel), one_thread():
        data = [
            call_load(job, Partition.of(index, job.partitions, job.data, job.seed, opener=opener))
            for index in range(job.partitions)
        ]
        evaluation = 0

        def evaluate(frame: bytes) -> list[bytes]:
            nonlocal evaluation
            evaluation += 1
            return [call_step(job, frame, index, part, evaluation) for index, part in enumerate(data)]

        return drive(job, evaluate)


def train_script(script: Path, arguments: Sequence[str], channel: CurveKeeper) -> None:
    """Run a program that reports to its end, as `python SCRIPT ARGUMENTS` does. TrainingError: it failed."""
    if not script.is_file():
        raise JobError(f"no training script at {script}: give the path of a Python file")
    before = sys.argv, sys.path[:]
    sys.argv = [str(script), *arguments]
    sys.path[0:0] = [str(script.resolve().parent)]
    try:
        with _channel(channel):
            runpy.run_path(str(script), run_name="__main__")
    except SystemExit as end:
        if end.code not in (None, 0):
            said = f"code {end.code}" if isinstance(end.code, int) else str(end.code)
            raise TrainingError(f"{script} ended {_when(channel)}: {said}") from None
    except JobError:
        raise
    except Exception as error:
        raise TrainingError(
            f"{script} failed {_when(channel)}: {type(error).__name__}: {error}", detail=user_traceback(error)
        ) from None
    finally:
        sys.argv, sys.path[:] = before


@contextmanager
def prints_aside() -> Iterator[None]:
    """Have what a program prints go to standard error: standard output is for the result."""
    with redirect_stdout(sys.stderr):
        yield


def _when(channel: CurveKeeper) -> str:
    return f"after iteration {channel.points[-1].iteration}" if channel.points else "before its first report"


@contextmanager
def _channel(channel: CurveKeeper) -> Iterator[None]:
    set_channel(channel)
    try:
        yield
    finally:
        set_channel(None)
