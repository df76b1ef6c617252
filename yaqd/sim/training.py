"""Training jobs on a cluster whose cores are divided anew each epoch, by the policy objects that a live cluster calls.

A fluid model: an iteration takes work / cores + fixed seconds, cores change between epochs, a job that arrives waits
for the next epoch, and one that ends leaves its cores idle until then. A core that a job gains computes nothing while
it moves, which takes no time unless it is said. Losses are known where an iteration has ended. Between two divisions
every job's course is a straight line, so times are exact.
"""

from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np

from yaqd.model.values import value
from yaqd.policies.curves.drops import HORIZONS
from yaqd.policies.curves.samples import Bools, Floats, Ints
from yaqd.policies.quality.facts import MILLI, Division
from yaqd.policies.quality.forecasts import Forecasts, JobSpec
from yaqd.policies.quality.policies import QUALITY
from yaqd.policies.quality.worth import concave
from yaqd.sim.workloads.training import ITERATIONS, TrainingJob

#: `perfect`: curves are known; the others are names of `PREDICTORS`
Prediction = Literal["mixed", "damped", "sublinear", "exponential", "repeated", "perfect"]
#: a simulation that takes longer has a policy that lets a job starve
_EPOCHS_MAX: Final = 2_000_000
#: policies that look at no curve, so that none is fitted for them
_BLIND: Final = ("fair", "las", "srpt", "goodput")
#: jobs from which on groups by loss are told apart
_GROUPED: Final = 4


@value()
class TrainingSystem:
    """How cores are divided."""

    policy: str = "finish"
    prediction: Prediction = "mixed"
    #: of what is reported: standard deviation as a part of L(0) - L(100)
    noise: float = 0.0
    epoch_s: float = 1.0
    #: for how long a core that a job gains computes nothing, s, and whether the policy knows
    move_s: float = 0.0
    heeds_moves: bool = True
    #: thousandths of a core
    unit: int = MILLI
    floor: int = MILLI


@dataclass(frozen=True, slots=True, eq=False)
class TrainingResult:
    """Arrays have one entry for each job, in the order of the workload; times are seconds from submission."""

    t90: Floats
    t95: Floats
    t100: Floats
    #: integral of the normalized loss over time until the job's end
    loss_s: Floats
    #: mean normalized loss of the jobs there, at each epoch until the last arrival; NaN without jobs
    mean_losses: Floats = field(repr=False)
    #: parts of the cores held by the quarter with the highest loss and by the half with the lowest
    top_quarter: float
    lower_half: float
    epochs: int
    #: cores that jobs gained, all epochs together
    cores_moved: float


def simulate_training(
    jobs: tuple[TrainingJob, ...], cores: int, system: TrainingSystem, seed: int = 1
) -> TrainingResult:
    """Run all jobs to their last iteration. `seed`: of the noise. Raises UnknownPolicy, ValueError."""
    return _Run(jobs, cores, system, seed).to_the_end()


def _by_job(rows: list[Floats]) -> Floats:
    """Return rows of one length, (jobs, iterations + 1): the shorter ones keep their last value."""
    width = max((len(row) for row in rows), default=ITERATIONS + 1)
    return np.array([np.pad(row, (0, width - len(row)), "edge") for row in rows]).reshape(len(rows), width)


class _Run:
    """One simulation. Arrays are by job."""

    def __init__(self, jobs: tuple[TrainingJob, ...], cores: int, system: TrainingSystem, seed: int) -> None:
        self._system = system
        self._policy = QUALITY[system.policy]
        self._division = Division(cores * MILLI, system.unit, system.epoch_s)
        self._arrival = np.array([job.arrival_s for job in jobs])
        self._work = np.array([job.work_s for job in jobs])
        self._fixed = np.array([job.fixed_s for job in jobs])
        self._cap = np.array([job.cap * MILLI for job in jobs], dtype=np.int64)
        self._jobs = jobs
        self._steps = np.array([job.curve.iterations for job in jobs], dtype=np.int64)
        losses = _by_job([np.array(job.curve.losses[: job.curve.iterations + 1]) for job in jobs])
        quality = _by_job([job.curve.quality for job in jobs])
        whole = (quality[:, 0] - quality[:, -1])[:, None]
        self._losses = losses
        self._normal = (quality - quality[:, -1:]) / whole
        noise = np.random.default_rng((seed, 21)).normal(size=losses.shape)
        self._reported = losses + system.noise * whole * noise
        # the integral of the loss from the start, in iterations
        self._until = np.concatenate((np.zeros((len(jobs), 1)), np.cumsum(self._normal[:, :-1], axis=1)), axis=1)
        self._marks = {part: np.argmax(self._normal <= 1.0 - part + 1e-12, axis=1) for part in (0.9, 0.95)}
        self._marks[1.0] = self._steps
        self._times = {part: np.full(len(jobs), np.nan) for part in self._marks}
        self._loss_s = np.zeros(len(jobs))
        self._done = np.zeros(len(jobs))
        self._rows = np.full(len(jobs), -1, dtype=np.int64)
        prediction = "mixed" if system.prediction == "perfect" else system.prediction
        self._forecasts = Forecasts(prediction)
        #: cores that jobs gained, all epochs together
        self._moved = 0.0
        self._means: list[float] = []
        self._groups: list[tuple[float, float]] = []

    def to_the_end(self) -> TrainingResult:
        now, epochs, epoch_s = 0.0, 0, self._system.epoch_s
        arrived = 0
        last = float(self._arrival[-1]) if len(self._arrival) else 0.0
        active = np.zeros(0, dtype=np.int64)
        while arrived < len(self._arrival) or active.size:
            if not active.size and self._arrival[arrived] > now:
                skipped = int(np.ceil((self._arrival[arrived] - now) / epoch_s - 1e-9))
                now += skipped * epoch_s
            upto = int(np.searchsorted(self._arrival, now, side="right"))
            if upto > arrived:
                active = np.concatenate((active, np.arange(arrived, upto)))
                for at in range(arrived, upto):
                    self._comes(at, now)
                arrived = upto
            if active.size:
                milli = self._divide(active)
                if now <= last:
                    self._note(active, milli)
                active = active[~self._advance(active, milli, now)]
            now += epoch_s
            epochs += 1
            if epochs > _EPOCHS_MAX:
                raise ValueError(f"{self._system.policy}: {active.size} jobs do not end")
        return self._result(epochs)

    def _comes(self, at: int, now: float) -> None:
        job = self._jobs[at]
        spec = JobSpec(
            floor=self._system.floor,
            cap=int(self._cap[at]),
            work_s=job.work_s,
            fixed_s=job.fixed_s,
            iterations=int(self._steps[at]),
            move_s=self._system.move_s if self._system.heeds_moves else 0.0,
        )
        self._rows[at] = self._forecasts.add(spec)
        self._loss_s[at] += now - job.arrival_s
        self._forecasts.report(int(self._rows[at]), 0, self._reported[at, :1])

    def _divide(self, active: Ints) -> Ints:
        """Return thousandths of a core of each active job."""
        rows = self._rows[active]
        if self._system.prediction == "perfect":
            self._forecasts.drops[rows] = self._true_drops(active)
        elif self._system.policy not in _BLIND:
            self._forecasts.refit()
        facts = self._forecasts.jobs(rows)
        shares = self._policy(facts, self._division)
        self._forecasts.given(rows, shares.milli)
        gained = np.maximum(shares.milli - facts.current, 0)
        self._moved += float(gained.sum()) / MILLI
        return np.asarray(shares.milli - gained * min(1.0, self._system.move_s / self._system.epoch_s))

    def _true_drops(self, active: Ints) -> Floats:
        done = self._done[active].astype(np.int64)[:, None]
        ahead = np.minimum(done + HORIZONS, self._steps[active][:, None]).astype(np.int64)
        at = active[:, None]
        drops = np.maximum.accumulate(self._losses[at, done] - self._losses[at, ahead], axis=1)
        return concave(np.broadcast_to(HORIZONS, drops.shape), drops)

    def _advance(self, active: Ints, milli: Ints, now: float) -> Bools:
        """Run one epoch; return which jobs have ended."""
        cores, epoch_s = milli / MILLI, self._system.epoch_s
        speed = cores / (self._work[active] + self._fixed[active] * cores)
        before, steps = self._done[active], self._steps[active]
        after = np.minimum(before + speed * epoch_s, steps)
        after = np.where(after > steps - 1e-9, steps, after)
        safe = np.where(speed > 0.0, speed, 1.0)
        for part, marks in self._marks.items():
            mark = marks[active]
            passed = (before < mark) & (after >= mark)
            at = active[passed]
            self._times[part][at] = now + (mark - before)[passed] / safe[passed] - self._arrival[at]
        under = np.where(speed > 0.0, (self._lost(active, after) - self._lost(active, before)) / safe, 0.0)
        stood = np.where(speed > 0.0, 0.0, epoch_s * self._normal[active, before.astype(np.int64)])
        self._loss_s[active] += under + stood
        self._done[active] = after
        self._report(active, before.astype(np.int64), after.astype(np.int64), cores)
        return after >= steps

    def _lost(self, active: Ints, done: Floats) -> Floats:
        """Return the integral of the loss over iterations, from the start."""
        whole = done.astype(np.int64)
        return np.asarray(self._until[active, whole] + (done - whole) * self._normal[active, whole])

    def _report(self, active: Ints, before: Ints, after: Ints, cores: Floats) -> None:
        self._forecasts.ran(self._rows[active], cores * self._system.epoch_s)
        for place in np.flatnonzero(after > before):
            at, row = int(active[place]), int(self._rows[active[place]])
            if after[place] >= self._steps[at]:
                self._forecasts.forget(row)
            else:
                first = int(before[place]) + 1
                self._forecasts.report(row, first, self._reported[at, first : int(after[place]) + 1])

    def _note(self, active: Ints, milli: Ints) -> None:
        losses = self._normal[active, self._done[active].astype(np.int64)]
        self._means.append(float(losses.mean()))
        if len(active) >= _GROUPED:
            order = np.argsort(-losses, kind="stable")
            quarter, half = max(1, round(len(active) / 4)), len(active) // 2
            held = milli[order] / max(1, int(milli.sum()))
            self._groups.append((float(held[:quarter].sum()), float(held[-half:].sum())))

    def _result(self, epochs: int) -> TrainingResult:
        top, low = np.mean(self._groups, axis=0) if self._groups else (np.nan, np.nan)
        return TrainingResult(
            self._times[0.9], self._times[0.95], self._times[1.0], self._loss_s,
            np.array(self._means), float(top), float(low), epochs, self._moved,
        )  # fmt: skip
