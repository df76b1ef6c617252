"""Training jobs that arrive: recorded curves of loss, drawn work, and how many cores each can use.

The workload of SLAQ's evaluation (section 4): 160 jobs that arrive as a Poisson process with a mean gap of 15 s on 20
machines of 32 cores. What the paper leaves open is fixed here: work is lognormal and independent of the curve.
"""

import json
from importlib.resources import files
from typing import Any, Final

import numpy as np

from yaqd.model.training import LOSS_MAX
from yaqd.model.values import value
from yaqd.policies.curves.drops import CLASSES
from yaqd.policies.curves.samples import Floats
from yaqd.sim.workloads.drawn import WorkloadError
from yaqd.sim.workloads.numbers import lognormal

#: a job counts as converged where it is after so many iterations; one with fewer losses has as many as were recorded
ITERATIONS: Final = 100
_SHIPPED: Final = "curves/nine.json"
CURVES_MAX: Final = 10_000
LOSSES_MAX: Final = 100_000
#: fewer say nothing of a course
LOSSES_MIN: Final = 10
#: characters of a name, and of a complaint
_SAID_MAX: Final = 200


@value()
class LossCurve:
    """A training that was recorded: its loss before and after each iteration."""

    algorithm: str
    #: `AUTOMATIC`, `SUBLINEAR` or `SUPERLINEAR`
    kind: int
    config: str
    losses: tuple[float, ...]
    #: the job's quality is that of its best model so far, not of its last one
    keeps_best: bool = False

    @property
    def iterations(self) -> int:
        """Return how many the job runs."""
        return min(len(self.losses) - 1, ITERATIONS)

    @property
    def quality(self) -> Floats:
        """Return the loss that counts, before and after each iteration."""
        losses = np.array(self.losses[: ITERATIONS + 1])
        return np.minimum.accumulate(losses) if self.keeps_best else losses

    @property
    def whole_fall(self) -> float:
        """Return what the job gains: from the first loss that counts to the last."""
        quality = self.quality
        return float(quality[0] - quality[-1])


@value()
class TrainingDrawn:
    """How training jobs are drawn; the same jobs for the same seed."""

    name: str = "paper"
    jobs: int = 160
    #: between two arrivals in the mean, s
    gap_s: float = 15.0
    cores: int = 640
    #: of a job's whole work, core-seconds: mean, and sigma of its logarithm. With 12,000 equal shares take 122 s to
    #: 95 %; 11,700 is the most, in hundreds, with which they take no more than 115 s (the paper: 98 s)
    mean_core_s: float = 11_700.0
    sigma: float = 1.0
    #: cores that one job can use
    cap: int = 64
    #: of each iteration, s, that no core shortens
    fixed_s: float = 0.05
    #: every curve equally often, in turn; else the algorithm is drawn, then one of its curves
    is_balanced: bool = False


@value()
class TrainingJob:
    """One job of a workload."""

    arrival_s: float
    curve: LossCurve
    #: core-seconds of one iteration
    work_s: float
    fixed_s: float
    cap: int


PAPER: Final = TrainingDrawn()
WIDE: Final = TrainingDrawn("wide", mean_core_s=13_300.0, cap=640, fixed_s=0.0)
CONTENTION_10: Final = TrainingDrawn("contention-10s", gap_s=10.0, mean_core_s=6_500.0)
CONTENTION_4: Final = TrainingDrawn("contention-4s", gap_s=4.0, mean_core_s=6_500.0)
#: two cores at a load of 1.0, the nine twice
LIVE: Final = TrainingDrawn("live", 18, 6.0, 2, 12.0, cap=2, fixed_s=0.03, is_balanced=True)
TRAINING: Final = {drawn.name: drawn for drawn in (PAPER, WIDE, CONTENTION_10, CONTENTION_4, LIVE)}


def nine() -> tuple[LossCurve, ...]:
    """Return the shipped curves: nine algorithms, five or more configurations of each."""
    return parse_curves(files("yaqd.sim").joinpath(_SHIPPED).read_text(), _SHIPPED)


def parse_curves(text: str, where: str) -> tuple[LossCurve, ...]:
    """Return curves from JSON. Raises WorkloadError where it is none, or a curve is short, flat or no numbers."""
    try:
        found = json.loads(text)["curves"]
        if not isinstance(found, list) or len(found) > CURVES_MAX:
            raise ValueError(f"curves is no list of at most {CURVES_MAX}")
        curves = tuple(map(_curve, found))
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError) as error:
        raise WorkloadError(f"{where}: no curves of loss: {repr(error)[:_SAID_MAX]}") from None
    for curve in curves:
        name = f"{where}: {curve.algorithm} {curve.config}"
        if len(curve.losses) < LOSSES_MIN:
            raise WorkloadError(f"{name} has fewer than {LOSSES_MIN} losses")
        if not np.all(np.abs(curve.losses) <= LOSS_MAX) or curve.whole_fall <= 0.0:
            raise WorkloadError(f"{name} does not fall in {curve.iterations} iterations")
    if not curves:
        raise WorkloadError(f"{where}: no curves")
    return curves


def _curve(one: Any) -> LossCurve:
    """Raises what the caller knows."""
    name, config, losses = one["algorithm"], one.get("config", ""), one["losses"]
    for said in (name, config):
        if not isinstance(said, str) or len(said) > _SAID_MAX or not said.isprintable():
            raise ValueError(f"algorithm and config are no printable texts of at most {_SAID_MAX} characters")
    if not isinstance(losses, list) or len(losses) > LOSSES_MAX:
        raise ValueError(f"losses is no list of at most {LOSSES_MAX}")
    if any(isinstance(loss, bool) or not isinstance(loss, int | float) for loss in losses):
        raise ValueError("a loss is no number")
    return LossCurve(name, CLASSES[one.get("class", "auto")], config, tuple(map(float, losses)))


def draw_training(drawn: TrainingDrawn, curves: tuple[LossCurve, ...], seed: int) -> tuple[TrainingJob, ...]:
    """Return the jobs in order of arrival; the first one arrives at 0."""
    rng = np.random.default_rng((seed, 20))
    gaps = rng.exponential(drawn.gap_s, drawn.jobs)
    gaps[0] = 0.0
    arrivals = np.cumsum(gaps)
    by_algorithm: dict[str, list[LossCurve]] = {}
    for curve in curves:
        by_algorithm.setdefault(curve.algorithm, []).append(curve)
    algorithms = sorted(by_algorithm)
    picks = rng.integers(0, len(algorithms), drawn.jobs)
    if drawn.is_balanced:
        picks = rng.permutation(np.arange(drawn.jobs) % len(algorithms))
    chosen = [by_algorithm[algorithms[int(pick)]] for pick in picks]
    cv = float(np.sqrt(np.expm1(drawn.sigma**2)))
    core_s = lognormal(rng, drawn.jobs, drawn.mean_core_s, cv)
    return tuple(
        _job(drawn, float(arrivals[at]), float(core_s[at]), chosen[at][int(rng.integers(0, len(chosen[at])))])
        for at in range(drawn.jobs)
    )


def _job(drawn: TrainingDrawn, arrival_s: float, core_s: float, curve: LossCurve) -> TrainingJob:
    """Return a job; one with fewer iterations has longer ones, so that it is as much work as another."""
    fixed_s = drawn.fixed_s * (ITERATIONS / curve.iterations)
    return TrainingJob(arrival_s, curve, core_s / curve.iterations, fixed_s, drawn.cap)
