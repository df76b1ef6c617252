"""SLAQ's evaluation (Zhang et al., SoCC 2017, section 4): who gets the cores of a cluster that trains models.

Settings were chosen on seeds 101 to 104; what is reported runs on seeds 1 to 6. `on_curves` makes the same experiments
of other curves: of those that were held out, and of what users have.
"""

from dataclasses import replace
from typing import Final, Literal

from yaqd.sim.experiments.model import Experiment, Measure, Plot, Row
from yaqd.sim.experiments.training import ALGORITHMS, PredictionCase, TrainingCase
from yaqd.sim.training import Prediction, TrainingSystem
from yaqd.sim.workloads.curves import CurveSet
from yaqd.sim.workloads.training import CONTENTION_4, CONTENTION_10, LIVE, PAPER, WIDE, TrainingDrawn

_SEEDS: Final = 6
_SOURCE: Final = "SLAQ (SoCC 2017), section 4"
_COLUMNS: Final = (
    ("t90", "t90 s", 1),
    ("t95", "t95 s", 1),
    ("t100", "t100 s", 1),
    ("loss_s", "loss-seconds", 2),
    ("mean_loss", "mean loss", 3),
    ("top_quarter", "top quarter %", 0),
    ("lower_half", "lower half %", 0),
)


def _case(
    label: str,
    workload: TrainingDrawn,
    policy: str,
    prediction: Prediction = "mixed",
    *,
    noise: float = 0.0,
    unit: int = 1000,
    floor: int = 1000,
) -> TrainingCase:
    """Return a case; equal shares are not rounded to whole cores, which would be to their harm."""
    unit = 1 if policy == "fair" else unit
    return TrainingCase(label, workload, TrainingSystem(policy, prediction, noise, unit=unit, floor=floor))


def _row(
    row: str,
    what: str,
    metric: str,
    case: str,
    least: float | None,
    against: str = "fair",
    *,
    reported: float | None = None,
    or_against: tuple[str, ...] = (),
) -> Row:
    """Return a row: so many times less than the other's, of the means over all seeds."""
    measure = Measure(metric, case, against, is_of_means=True, or_against=or_against)
    return Row(row, what, measure, reported, sense="shown" if least is None else "at-least", bound=least)


def _mean(
    row: str,
    what: str,
    metric: str,
    case: str,
    reported: float | None,
    unit: str,
    *,
    digits: int = 1,
    within: float = 0.0,
) -> Row:
    sense: Literal["near", "shown"] = "near" if within else "shown"
    measure = Measure(metric, case, is_of_means=True)
    return Row(row, what, measure, reported, unit, sense, tolerance=within, digits=digits)


_OTHERS: Final = ("las", "srpt", "goodput")

DEFAULT: Final = Experiment(
    name="slaq-paper",
    title="160 training jobs on 640 cores, at most 64 cores a job",
    source=_SOURCE,
    cases=(
        *(_case(name, PAPER, name) for name in ("fair", "finish", "slaq-total", "slaq-maxmin", *_OTHERS)),
        _case("finish, perfect prediction", PAPER, "finish", "perfect"),
        _case("finish, last change repeated", PAPER, "finish", "repeated"),
        _case("slaq-total, perfect prediction", PAPER, "slaq-total", "perfect"),
        _case("slaq-total, last change repeated", PAPER, "slaq-total", "repeated"),
    ),
    rows=(
        _mean("valid-t90", "equal shares: time to 90 % (60 to 85 s)", "t90", "fair", 72.5, "s", within=0.1725),
        _mean("valid-t95", "equal shares: time to 95 % (85 to 115 s)", "t95", "fair", 100.0, "s", within=0.15),
        _row("t90", "time to 90 %, finish", "t90", "finish", 1.8, reported=1.82),
        _row("t95", "time to 95 %, finish", "t95", "finish", 1.75, reported=1.44),
        _row("t100", "time to iteration 100, finish", "t100", "finish", 1.1),
        _row("t90-slaq", "time to 90 %, slaq-total", "t90", "slaq-total", 1.82, reported=1.82),
        _row("t95-slaq", "time to 95 %, slaq-total", "t95", "slaq-total", 1.75, reported=1.44),
        _row("t100-slaq", "time to iteration 100, slaq-total", "t100", "slaq-total", None),
        _row("against", "time to 90 %, the best of three others / finish", "t90", "finish", 1.3, "las",
             or_against=_OTHERS[1:]),
        _row("t90-perfect", "time to 90 %, slaq-total, perfect prediction", "t90", "slaq-total, perfect prediction",
             None),
        _row("t90-repeated", "time to 90 %, slaq-total, last change repeated", "t90",
             "slaq-total, last change repeated", None),
        _mean("top-quarter", "cores of the quarter with the highest loss, slaq-total", "top_quarter", "slaq-total",
              60.0, "%", digits=0),
        _mean("lower-half", "cores of the half with the lowest loss, slaq-total", "lower_half", "slaq-total", 22.0,
              "%", digits=0),
    ),
    plots=(
        Plot("cdf", "t90", "Time to 90 % of the loss reduction", axis="from submission (s)",
             cases=("fair", "las", "slaq-total", "finish"), log=True),
        Plot("course", "loss", "Mean normalized loss of the jobs there (first seed)",
             cases=("fair", "slaq-total", "finish")),
        Plot("bars", "t100", "Time to iteration 100", "t100",
             cases=("fair", "finish", "slaq-total", "slaq-maxmin", *_OTHERS)),
        Plot("bars", "groups", "Cores held by the quarter of the jobs with the highest loss", "top_quarter",
             cases=("fair", "slaq-total", "finish")),
    ),
    seeds=_SEEDS,
    columns=_COLUMNS,
    notes=("Means over seeds in the rows, middle ones in the table.",),
)  # fmt: skip

WIDE_JOBS: Final = Experiment(
    name="slaq-wide",
    title="160 training jobs on 640 cores, any job on any number of them",
    source=_SOURCE,
    cases=tuple(_case(name, WIDE, name) for name in ("fair", "slaq-total", "finish")),
    rows=(
        _row("mean-loss", "mean loss of the jobs there, slaq-total", "mean_loss", "slaq-total", 3.7, reported=3.7),
        _row("loss-seconds", "integral of the loss over time, finish", "loss_s", "finish", 5.0),
        _row("wide-t90", "time to 90 %, finish", "t90", "finish", None),
        _row("wide-t100", "time to iteration 100, finish", "t100", "finish", None),
        _row("wide-t100-slaq", "time to iteration 100, slaq-total", "t100", "slaq-total", None),
    ),
    plots=(Plot("course", "loss", "Mean normalized loss of the jobs there (first seed)"),),
    seeds=_SEEDS,
    columns=_COLUMNS,
)

CONTENTION: Final = Experiment(
    name="slaq-contention",
    title="Training jobs that come every 10 s and every 4 s",
    source=_SOURCE,
    cases=tuple(
        _case(f"{name}, {drawn.gap_s:g} s", drawn, name)
        for drawn in (CONTENTION_10, CONTENTION_4)
        for name in ("fair", "finish", "slaq-total")
    ),
    rows=(
        _row("contention-10s", "a job each 10 s: time to 90 %", "t90", "finish, 10 s", 1.2, "fair, 10 s", reported=1.3),
        _row("contention-4s", "a job each 4 s: time to 90 %", "t90", "finish, 4 s", 3.0, "fair, 4 s", reported=1.79),
        _row("contention-10s-slaq", "the same each 10 s, slaq-total", "t90", "slaq-total, 10 s", None, "fair, 10 s"),
        _row("contention-4s-slaq", "the same each 4 s, slaq-total", "t90", "slaq-total, 4 s", None, "fair, 4 s"),
    ),
    seeds=_SEEDS,
    columns=_COLUMNS,
)

_NOISE: Final = 0.005
NOISE: Final = Experiment(
    name="slaq-noise",
    title="Reports that are off by 0.5 % of the whole loss reduction",
    source="ours: the paper's losses have no noise",
    cases=(
        _case("fair", PAPER, "fair", noise=_NOISE),
        _case("slaq-total", PAPER, "slaq-total", noise=_NOISE),
        _case("slaq-total, last change repeated", PAPER, "slaq-total", "repeated", noise=_NOISE),
        _case("finish", PAPER, "finish", noise=_NOISE),
        _case("finish, last change repeated", PAPER, "finish", "repeated", noise=_NOISE),
    ),
    rows=(
        _row("noise", "time to 90 %, slaq-total", "t90", "slaq-total", 1.7),
        _row("noise-repeated", "the same, last change repeated", "t90", "slaq-total, last change repeated", None),
        _row("noise-finish", "time to 90 %, finish", "t90", "finish", None),
        _row("noise-finish-repeated", "the same, last change repeated", "t90", "finish, last change repeated", None),
    ),
    seeds=_SEEDS,
    columns=_COLUMNS,
)


def _error(row: str, what: str, metric: str, case: str, most: float | None, reported: float | None = None) -> Row:
    sense: Literal["at-most", "shown"] = "shown" if most is None else "at-most"
    return Row(row, what, Measure(metric, case, is_of_means=True), reported, "%", sense, most)


PREDICTION: Final = Experiment(
    name="slaq-prediction",
    title="The loss ten iterations ahead, of nine algorithms",
    source="SLAQ (SoCC 2017), section 3.3.2",
    cases=(
        PredictionCase("ours", "mixed"),
        PredictionCase("damped trend", "damped"),
        PredictionCase("sublinear family", "sublinear"),
        PredictionCase("exponential family", "exponential"),
        PredictionCase("last change repeated", "repeated"),
        PredictionCase("ours, noise", "mixed", 0.005),
        PredictionCase("last change repeated, noise", "repeated", 0.005),
    ),
    rows=(
        _error("prediction", "error, of L(0) - L(100)", "error", "ours", 1.5),
        _error("prediction-worst", "error of the algorithm with the largest", "worst_error", "ours", 5.0),
        Row("prediction-ratio", "ours against repeating the last change",
            Measure("error", "ours", "last change repeated", is_of_means=True), bound=1.5),
        _error("prediction-relative", "error, of the loss itself", "relative_error", "ours", None, 3.5),
        Row("prediction-noise", "the same ratio with noise of 0.5 %",
            Measure("error", "ours, noise", "last change repeated, noise", is_of_means=True), sense="shown"),
        *(_error(f"prediction-{name}", f"{name}: error, of L(0) - L(100)", f"error_{name}", "ours", 5.0)
          for name in ALGORITHMS),
        *(_error(f"relative-{name}", f"{name}: error, of the loss itself", f"relative_{name}", "ours", None)
          for name in ALGORITHMS),
    ),
    plots=(Plot("bars", "error", "Error of the predicted loss, ten iterations ahead", "error"),),
    seeds=1,
    columns=(("error", "of the whole fall %", 2), ("worst_error", "worst algorithm %", 2),
             ("relative_error", "of the loss %", 2)),
)  # fmt: skip

_PARTS: Final = 50
SMALL: Final = Experiment(
    name="slaq-live",
    title="18 training jobs on one machine with two cores, in parts of 1/20: the live run's twin",
    source="ours: benchmarks/slaq.py runs it live",
    cases=tuple(_case(name, LIVE, name, unit=_PARTS, floor=_PARTS) for name in ("fair", "finish", "slaq-total")),
    rows=(
        _row("live-t90-simulated", "time to 90 %, finish", "t90", "finish", None),
        _row("live-t100-simulated", "time to iteration 100, finish", "t100", "finish", None),
    ),
    seeds=_SEEDS,
    columns=_COLUMNS,
)

OTHER_CURVES: Final = Experiment(
    name="slaq-curves",
    title="160 training jobs along the losses of --curves, or of the nine",
    source=f"{_SOURCE}, where the jobs are the nine",
    cases=(
        *(_case(name, PAPER, name) for name in ("fair", "finish", "slaq-total")),
        _case("finish, perfect prediction", PAPER, "finish", "perfect"),
        _case("slaq-total, perfect prediction", PAPER, "slaq-total", "perfect"),
    ),
    rows=(
        _row("curves-t90", "time to 90 %, finish", "t90", "finish", None),
        _row("curves-t95", "time to 95 %, finish", "t95", "finish", None),
        _row("curves-t100", "time to the last iteration, finish", "t100", "finish", None),
        _row("curves-loss", "integral of the loss over time, finish", "loss_s", "finish", None),
        _row("curves-t90-slaq", "time to 90 %, slaq-total", "t90", "slaq-total", None, reported=1.82),
        _row("curves-t95-slaq", "time to 95 %, slaq-total", "t95", "slaq-total", None, reported=1.44),
        _row("curves-t100-slaq", "time to the last iteration, slaq-total", "t100", "slaq-total", None),
        _row("curves-loss-slaq", "integral of the loss over time, slaq-total", "loss_s", "slaq-total", None),
        _row("curves-t90-perfect", "time to 90 %, finish that knows the curves", "t90", "finish, perfect prediction",
             None),
    ),
    plots=(Plot("course", "loss", "Mean normalized loss of the jobs there (first seed)"),),
    seeds=_SEEDS,
    columns=_COLUMNS,
)  # fmt: skip

SLAQ: Final = (DEFAULT, WIDE_JOBS, CONTENTION, NOISE, PREDICTION, SMALL, OTHER_CURVES)


def on_curves(experiment: Experiment, curves: CurveSet) -> Experiment:
    """Return the experiment with jobs along these curves, without the rows of algorithms that are not among them.

    Raises ValueError where the experiment trains nothing.
    """
    cases = []
    for case in experiment.cases:
        if not isinstance(case, TrainingCase | PredictionCase):
            raise ValueError(f"{curves.name}: {experiment.name} trains nothing; slaq-curves does")
        cases.append(replace(case, curves=curves))
    names = {curve.algorithm for curve in curves.curves}
    absent = {f"{kind}_{name}" for name in ALGORITHMS if name not in names for kind in ("error", "relative")}
    rows = tuple(row for row in experiment.rows if row.measure.metric not in absent)
    return replace(experiment, cases=tuple(cases), rows=rows, notes=(*experiment.notes, *curves.notes))
