"""Cases of training jobs: divided cores under a policy, and predictions held to recorded curves."""

from dataclasses import replace
from functools import lru_cache
from typing import Final

import numpy as np

from yaqd.model.training import WINDOW
from yaqd.model.values import value
from yaqd.policies.curves.drops import PREDICTORS
from yaqd.policies.curves.samples import Floats, sample
from yaqd.sim.training import TrainingResult, TrainingSystem, simulate_training
from yaqd.sim.workloads.curves import CurveSet
from yaqd.sim.workloads.training import ITERATIONS, LossCurve, TrainingDrawn, draw_training, nine

#: epochs in a window of the mean loss over time
_WINDOW: Final = 5
#: iterations at which the one `AHEAD` further is predicted
PREDICTED_AT: Final = range(10, 91, 5)
AHEAD: Final = 10
#: of the whole fall: an error of the loss is held to no smaller loss, as of a metric that was turned, which comes to 0
_NO_LOSS: Final = 1e-3
ALGORITHMS: Final = (
    "kmeans",
    "logistic",
    "svm",
    "polynomial_svm",
    "boosted_classes",
    "boosted_regression",
    "mlp",
    "linear",
    "lda",
)
TRAINING_NAMES: Final = {
    "t90": "from submission to 90 % of the loss reduction of 100 iterations, mean (s)",
    "t95": "from submission to 95 % of it, mean (s)",
    "t100": "from submission to iteration 100, mean (s)",
    "mean_loss": "mean normalized loss of the jobs there, mean over epochs until the last arrival",
    "loss_s": "integral of a job's normalized loss over time, mean (s)",
    "top_quarter": "cores held by the quarter of the jobs with the highest loss (%)",
    "lower_half": "cores held by the half of the jobs with the lowest loss (%)",
    "error": f"error of the loss {AHEAD} iterations ahead, of L(0) - L({ITERATIONS}), mean (%)",
    "worst_error": "the same of the algorithm with the largest (%)",
    "relative_error": f"error of the loss {AHEAD} iterations ahead, of that loss, mean (%)",
    **{
        f"error_{name}": f"error of {name}'s loss {AHEAD} iterations ahead, of its whole fall (%)"
        for name in ALGORITHMS
    },
    **{f"relative_{name}": f"error of {name}'s loss {AHEAD} iterations ahead, of that loss (%)" for name in ALGORITHMS},
}


@value()
class TrainingCase:
    """One way to divide cores under one workload."""

    label: str
    workload: TrainingDrawn
    system: TrainingSystem
    #: read by what searches limits; there are none to search here
    limits: tuple[int, ...] = ()
    #: None: the nine
    curves: CurveSet | None = None

    @property
    def conditions(self) -> str:
        drawn, system = self.workload, self.system
        unit = "" if system.unit == 1000 else f" in parts of {system.unit / 1000:g}"
        noise = f", reports off by {100 * system.noise:g} %" if system.noise else ""
        return (
            f"{drawn.jobs} jobs, Poisson, mean gap {drawn.gap_s:g} s, {drawn.cores} cores{unit}, epoch "
            f"{system.epoch_s:g} s, {drawn.mean_core_s:g} core-s a job in the mean (sigma {drawn.sigma:g}), at most "
            f"{drawn.cap} cores a job, {drawn.fixed_s:g} s fixed an iteration{noise}{_named(self.curves)}"
        )

    def smaller(self, part: int) -> "TrainingCase":
        """Return the same with a part of the jobs."""
        return replace(self, workload=replace(self.workload, jobs=max(4, self.workload.jobs // part)))


@value()
class PredictionCase:
    """One predictor held to recorded curves."""

    label: str
    predictor: str
    #: of what is reported, as a part of L(0) - L(100)
    noise: float = 0.0
    limits: tuple[int, ...] = ()
    #: None: the nine
    curves: CurveSet | None = None

    @property
    def conditions(self) -> str:
        noise = f", reports off by {100 * self.noise:g} %" if self.noise else ""
        return (
            f"{AHEAD} iterations ahead from iterations {PREDICTED_AT[0]}, {PREDICTED_AT[1]} .. "
            f"{PREDICTED_AT[-1]}{noise}{_named(self.curves)}"
        )

    def smaller(self, part: int) -> "PredictionCase":
        """Return itself: it takes no time."""
        return self


def _named(curves: CurveSet | None) -> str:
    return "" if curves is None else f", curves: {curves.name}"


@lru_cache(maxsize=1)
def _nine() -> tuple[LossCurve, ...]:
    return nine()


def _curves(case: TrainingCase | PredictionCase) -> tuple[LossCurve, ...]:
    return _nine() if case.curves is None else case.curves.curves


def run_training(case: TrainingCase, seed: int) -> tuple[dict[str, float], tuple[float, ...], tuple[float, ...]]:
    """Return the case's numbers, each job's time to 90 % in s, and the mean loss in windows of `_WINDOW` epochs."""
    drawn = case.workload
    result = simulate_training(draw_training(drawn, _curves(case), seed), drawn.cores, case.system, seed)
    return _numbers(result), tuple(float(at) for at in result.t90), _windows(result.mean_losses)


def _numbers(result: TrainingResult) -> dict[str, float]:
    found = {
        "t90": result.t90.mean(),
        "t95": result.t95.mean(),
        "t100": result.t100.mean(),
        "mean_loss": result.mean_losses.mean() if result.mean_losses.size else np.nan,
        "loss_s": result.loss_s.mean(),
        "top_quarter": 100 * result.top_quarter,
        "lower_half": 100 * result.lower_half,
    }
    return {name: float(number) for name, number in found.items() if not np.isnan(number)}


def _windows(losses: Floats) -> tuple[float, ...]:
    whole = losses[: len(losses) // _WINDOW * _WINDOW].reshape(-1, _WINDOW)
    return tuple(float(mean) for mean in whole.mean(axis=1))


def run_prediction(case: PredictionCase, seed: int) -> dict[str, float]:
    """Return the errors of the case's predictor; each curve, then each algorithm counts the same.

    Curves that are too short to be predicted are left out. Raises ValueError where all are.
    """
    curves = tuple(curve for curve in _curves(case) if curve.iterations >= PREDICTED_AT[0] + AHEAD)
    if not curves:
        raise ValueError(f"no curve has the {PREDICTED_AT[0] + AHEAD} iterations that a prediction is held to")
    by_algorithm: dict[str, list[tuple[float, float]]] = {}
    for curve, errors in zip(curves, curve_errors(curves, case, seed), strict=True):
        by_algorithm.setdefault(curve.algorithm, []).append(errors)
    means = {name: np.mean(found, axis=0) for name, found in by_algorithm.items()}
    of_range, of_loss = np.mean(list(means.values()), axis=0)
    worst = max(float(mean[0]) for mean in means.values())
    each = {f"error_{name}": float(mean[0]) for name, mean in means.items()}
    relative = {f"relative_{name}": float(mean[1]) for name, mean in means.items()}
    return {"error": float(of_range), "worst_error": worst, "relative_error": float(of_loss)} | each | relative


def curve_errors(curves: tuple[LossCurve, ...], case: PredictionCase, seed: int) -> list[tuple[float, float]]:
    """Return by curve the mean error in percent: of the whole fall, and of the loss that was predicted."""
    steps = np.array([curve.iterations for curve in curves])
    losses = np.array(
        [np.pad(curve.losses[: ITERATIONS + 1], (0, ITERATIONS - curve.iterations), "edge") for curve in curves]
    )
    whole = np.array([curve.whole_fall for curve in curves])
    noise = np.random.default_rng((seed, 22)).normal(size=losses.shape)
    seen = losses + case.noise * whole[:, None] * noise
    of_range, of_loss = np.full((2, len(PREDICTED_AT), len(curves)), np.nan)
    for place, at in enumerate(PREDICTED_AT):
        many = min(WINDOW, at + 1)
        counts = np.full(len(curves), many)
        windows, iterations = np.zeros((2, len(curves), WINDOW))
        windows[:, -many:], iterations[:, -many:] = seen[:, at + 1 - many : at + 1], np.arange(at + 1 - many, at + 1)
        found = sample(iterations, windows, counts)
        ahead = np.tile(np.arange(AHEAD + 1.0), (len(curves), 1))
        drop = PREDICTORS[case.predictor](found, ahead)[:, -1] * found.scale
        off = np.abs(seen[:, at] - drop - losses[:, at + AHEAD])
        is_there = at + AHEAD <= steps
        of_range[place, is_there] = (100 * off / whole)[is_there]
        of_loss[place, is_there] = (100 * off / np.maximum(np.abs(losses[:, at + AHEAD]), _NO_LOSS * whole))[is_there]
    return list(zip(np.nanmean(of_range, axis=0).tolist(), np.nanmean(of_loss, axis=0).tolist(), strict=True))
