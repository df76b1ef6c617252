"""SLAQ's evaluation in simulated time: the rows of `yaq sim run slaq-...` that claim something.

Rows `t90`, `t95`, `t100`, `t90-slaq`, `t95-slaq`, `against`, `mean-loss`, `loss-seconds`, `contention-10s`,
`contention-4s` and `noise`: ours and the other side's number are means over the seeds, the ratio is of these means.
Rows `prediction` (percent of the whole fall of the loss; theirs repeats the last change) and `prediction-worst` (of the
algorithm with the largest error). `--runs` says how many seeds; 6 are what is reported.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from benchmarks.options import Options, progress
from benchmarks.report import Row
from yaqd.sim.experiments.model import Experiment
from yaqd.sim.experiments.model import Row as Claim
from yaqd.sim.experiments.model import Run as Simulated
from yaqd.sim.experiments.outcome import conditions, outcomes
from yaqd.sim.experiments.runner import quick, run_experiment
from yaqd.sim.experiments.slaq import SLAQ

ROWS: Final = (
    "t90",
    "t95",
    "t100",
    "t90-slaq",
    "t95-slaq",
    "against",
    "mean-loss",
    "loss-seconds",
    "contention-10s",
    "contention-4s",
    "noise",
    "prediction",
    "prediction-worst",
    "prediction-ratio",
)
#: a scale below this runs the experiments in small
_SMALL: Final = 0.5


def measure(options: Options) -> tuple[list[Row], dict[str, Mapping[str, Any]]]:
    """Return the rows asked for, and what belongs beside each."""
    rows: list[Row] = []
    beside: dict[str, Mapping[str, Any]] = {}
    for experiment in SLAQ:
        claims = [claim for claim in experiment.rows if claim.id in ROWS and options.wants(claim.id)]
        if claims:
            progress(f"yaq sim run {experiment.name}")
            asked = _only(experiment, claims)
            if options.scale < _SMALL:
                asked = quick(asked)
            runs = run_experiment(asked, range(1, 1 + (1 if experiment.seeds == 1 else options.runs)))
            for claim in claims:
                rows.append(_row(claim, runs))
                beside[claim.id] = _beside(asked, claim, runs)
    return rows, beside


def _only(experiment: Experiment, claims: list[Claim]) -> Experiment:
    """Return the experiment with the cases that the rows read, and no others."""
    named = {label for claim in claims for label in _labels(claim)}
    cases = tuple(case for case in experiment.cases if case.label in named)
    return Experiment(
        experiment.name, experiment.title, experiment.source, cases, tuple(claims), seeds=experiment.seeds
    )


def _labels(claim: Claim) -> list[str]:
    measure = claim.measure
    return [label for label in (measure.case, measure.against, *measure.or_against) if label is not None]


def _row(claim: Claim, runs: list[Simulated]) -> Row:
    metric = claim.measure.metric
    means = {
        label: [run.metrics[metric] for run in runs if run.label == label and metric in run.metrics]
        for label in _labels(claim)
    }
    ours, *others = (float(np.mean(means[label])) for label in _labels(claim))
    theirs = min(others) if others else None
    own = means[claim.measure.case]
    unit = "s" if metric in ("t90", "t95", "t100", "loss_s") else "%" if "error" in metric else "loss"
    return Row(
        claim.id, ours, theirs, unit, None if theirs is None else theirs / ours, float(np.ptp(own)) / ours, len(own)
    )


def _beside(experiment: Experiment, claim: Claim, runs: list[Simulated]) -> Mapping[str, Any]:
    (outcome,) = (found for found in outcomes(experiment, runs) if found.row.id == claim.id)
    unit = claim.unit
    return {
        "verdict": outcome.verdict,
        "measured": f"{outcome.measured:.2f}{unit}",
        "reported": "-" if claim.reported is None else f"{claim.reported:g}{unit}",
        "by seed": [round(value, 2) for value in outcome.values],
        "settings": conditions(experiment, runs),
    }
