"""HyperDrive's evaluation in simulated time: the rows of `yaq sim run hyperdrive-...` that claim something.

Each row but four is a row of an experiment: ours and the other side's number are of the same orders. `capacity` and
`capacity-mean` are the worst and the geometric mean of the nine of `hyperdrive-capacity`. `lost` counts the targets
that ours missed in all experiments. Rows `pop-paper-...` ask the paper's own predictor (100 walkers, 700 samples). It
takes about a second a curve, so they run on fewer sets and orders. `--runs` says how many seeds of orders; 1 is what
is reported.

    python -m benchmarks.hyperdrive --only bandit --only capacity
"""

from collections.abc import Iterable, Mapping
from math import exp, log
from typing import Any, Final

import numpy as np

from benchmarks.options import Options, progress
from benchmarks.report import Row
from yaqd.sim.experiments.exploring import missing_pool
from yaqd.sim.experiments.hyperdrive import HYPERDRIVE
from yaqd.sim.experiments.model import Experiment
from yaqd.sim.experiments.model import Row as Claim
from yaqd.sim.experiments.model import Run as Simulated
from yaqd.sim.experiments.outcome import best_other, conditions, outcomes
from yaqd.sim.experiments.runner import quick, run_experiment

CLAIMS: Final = (
    "bandit",
    "earlyterm",
    "bandit-kill",
    "earlyterm-kill",
    "default",
    "asha",
    "asha-best",
    "median",
    "hyperband",
    "spread-bandit",
    "spread-earlyterm",
    "spread-default",
    "guided",
    "guided-best",
    "cifar-valid",
    "cifar-earlyterm",
    "cifar-default",
    "cifar-asha",
    "cifar-asha-p90",
    "cifar-asha-best-p90",
    "cifar-spread-earlyterm",
    "cifar-spread-default",
    "pop-paper-earlyterm",
    "pop-paper-bandit",
    "pop-paper-plain-earlyterm",
    "pop-paper-plain-bandit",
)
#: least of the nine, and of their geometric mean
CAPACITY_ROWS: Final = {"capacity": 1.05, "capacity-mean": 1.2}
LOST: Final = "lost"
ROWS: Final = (*CLAIMS, *CAPACITY_ROWS, LOST)
#: a scale below this runs the experiments in small
_SMALL: Final = 0.5


def measure(options: Options) -> tuple[list[Row], dict[str, Mapping[str, Any]]]:
    """Return the rows asked for, and what belongs beside each."""
    rows: list[Row] = []
    beside: dict[str, Mapping[str, Any]] = {}
    lost: dict[str, float] = {}
    for experiment in HYPERDRIVE:
        claims = [claim for claim in experiment.rows if _is_asked(claim, options)]
        if not claims:
            continue
        missing = missing_pool(experiment.cases)
        if missing is not None:
            progress(f"{experiment.name} does not run here: {missing}")
            continue
        progress(f"yaq sim run {experiment.name}")
        asked = _only(experiment, claims)
        if options.scale < _SMALL:
            asked = quick(asked)
        runs = run_experiment(asked, range(1, options.runs + 1), _told)
        ratios = {}
        for claim in claims:
            if claim.id.startswith("lost-"):
                lost[claim.id] = _mean(runs, claim.measure.case, "lost")
            elif claim.id.startswith("capacity-"):
                ratios[claim.id] = _row(claim, runs)
            else:
                rows.append(_row(claim, runs))
                beside[claim.id] = _beside(asked, claim, runs)
        if ratios:
            _capacity(ratios, options, rows, beside)
    if options.wants(LOST):
        rows.append(Row(LOST, sum(lost.values()), None, "explorations", None, 0.0, options.runs))
        beside[LOST] = {"at most": 0, **lost}
    return rows, beside


def _told(done: int, total: int, what: str) -> None:
    progress(f"  {done} of {total}: {what}")


def _is_asked(claim: Claim, options: Options) -> bool:
    if claim.id.startswith("lost-"):
        return options.wants(LOST)
    if claim.id.startswith("capacity-"):
        return any(options.wants(row_id) for row_id in CAPACITY_ROWS)
    return claim.id in CLAIMS and options.wants(claim.id)


def _only(experiment: Experiment, claims: list[Claim]) -> Experiment:
    """Return the experiment with the cases that the rows read, and no others."""
    named = {label for claim in claims for label in _labels(claim)}
    cases = tuple(case for case in experiment.cases if case.label in named)
    return Experiment(experiment.name, experiment.title, experiment.source, cases, tuple(claims), seeds=1)


def _labels(claim: Claim) -> list[str]:
    measure = claim.measure
    return [label for label in (measure.case, measure.against, *measure.or_against) if label is not None]


def _mean(runs: Iterable[Simulated], label: str, metric: str) -> float:
    return float(np.mean([run.metrics[metric] for run in runs if run.label == label]))


def _row(claim: Claim, runs: list[Simulated]) -> Row:
    metric, measure = claim.measure.metric, claim.measure
    ours = _mean(runs, measure.case, metric)
    theirs = None if measure.against is None else _mean(runs, best_other(measure, runs), metric)
    own = [run.metrics[metric] for run in runs if run.label == measure.case]
    ratio = None if theirs is None else theirs / ours
    return Row(claim.id, ours, theirs, "h", ratio, float(np.ptp(own)) / ours if ours else 0.0, len(own))


def _beside(experiment: Experiment, claim: Claim, runs: list[Simulated]) -> Mapping[str, Any]:
    (outcome,) = (found for found in outcomes(experiment, runs) if found.row.id == claim.id)
    sides = [claim.measure.case]
    if claim.measure.against is not None:
        sides.append(best_other(claim.measure, runs))
    return {
        "verdict": outcome.verdict,
        "reported": "-" if claim.reported is None else f"{claim.reported:g}{claim.unit}",
        "theirs is": sides[-1] if len(sides) > 1 else "-",
        "lost, ours and theirs": [_mean(runs, label, "lost") for label in sides],
        "settings": conditions(experiment, [run for run in runs if run.label in _labels(claim)]),
    }


def _capacity(ratios: dict[str, Row], options: Options, rows: list[Row], beside: dict[str, Mapping[str, Any]]) -> None:
    found = {row_id: row.ratio or 0.0 for row_id, row in ratios.items()}
    worst = ratios[min(found, key=lambda row_id: found[row_id])]
    mean = exp(sum(log(max(ratio, 1e-9)) for ratio in found.values()) / len(found))
    made = {
        "capacity": Row("capacity", worst.ours, worst.theirs, "h", worst.ratio, worst.spread, worst.runs),
        "capacity-mean": Row("capacity-mean", 1.0, mean, "of ours", mean, 0.0, worst.runs),
    }
    for row_id, least in CAPACITY_ROWS.items():
        if options.wants(row_id):
            rows.append(made[row_id])
            beside[row_id] = {
                "at least": f"{least:g}x",
                "worst": worst.id,
                **{n: f"{r:.2f}x" for n, r in found.items()},
            }
