"""Training jobs that arrive: recorded curves of loss, drawn work, and how many cores each can use.

The workload of SLAQ's evaluation (section 4): 160 jobs that arrive as a Poisson process with a mean gap of 15 s on 20
machines of 32 cores. What the paper leaves open is fixed here: work is lognormal and independent of the curve.
"""

import json
from importlib.resources import files
from pathlib import Path
from typing import Final

import numpy as np

from yaqd.model.values import value
from yaqd.policies.curves.drops import CLASSES
from yaqd.sim.workloads.drawn import WorkloadError
from yaqd.sim.workloads.numbers import lognormal

#: a job counts as converged where it is after so many iterations
ITERATIONS: Final = 100
_SHIPPED: Final = "curves/nine.json"
_CURVES_MAX: Final = 10_000
_LOSSES_MAX: Final = 100_000


@value()
class LossCurve:
    """A training that was recorded: its loss before and after each iteration."""

    algorithm: str
    #: `AUTOMATIC`, `SUBLINEAR` or `SUPERLINEAR`
    kind: int
    config: str
    losses: tuple[float, ...]

    @property
    def whole_fall(self) -> float:
        """From the first loss to that after `ITERATIONS`."""
        return self.losses[0] - self.losses[ITERATIONS]


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


def read_curves(path: Path) -> tuple[LossCurve, ...]:
    """Return the curves of a file that `yaq ml record` wrote. Raises WorkloadError."""
    try:
        return parse_curves(path.read_text(), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise WorkloadError(f"{path}: {error}") from None


def parse_curves(text: str, where: str) -> tuple[LossCurve, ...]:
    """Return curves from JSON. Raises WorkloadError where it is none, or a curve is short, flat or no numbers."""
    try:
        found = json.loads(text)["curves"]
        curves = tuple(
            LossCurve(
                str(one["algorithm"]),
                CLASSES[one.get("class", "auto")],
                str(one.get("config", "")),
                tuple(float(loss) for loss in one["losses"][:_LOSSES_MAX]),
            )
            for one in found[:_CURVES_MAX]
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise WorkloadError(f"{where}: no curves of loss: {error!r}") from None
    for curve in curves:
        if len(curve.losses) <= ITERATIONS:
            raise WorkloadError(f"{where}: {curve.algorithm} {curve.config} has fewer than {ITERATIONS + 1} losses")
        if not np.all(np.isfinite(curve.losses)) or curve.whole_fall <= 0.0:
            raise WorkloadError(f"{where}: {curve.algorithm} {curve.config} does not fall in {ITERATIONS} iterations")
    if not curves:
        raise WorkloadError(f"{where}: no curves")
    return curves


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
        TrainingJob(
            arrival_s=float(arrivals[at]),
            curve=chosen[at][int(rng.integers(0, len(chosen[at])))],
            work_s=float(core_s[at]) / ITERATIONS,
            fixed_s=drawn.fixed_s,
            cap=drawn.cap,
        )
        for at in range(drawn.jobs)
    )
