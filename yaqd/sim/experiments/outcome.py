"""Reported against measured: which rows hold, and under which conditions that was measured."""

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from yaqd.model.values import value
from yaqd.sim.experiments.model import AnyCase, Case, Experiment, Measure, Row, Run
from yaqd.sim.shape import NETWORK_S


@value()
class Outcome:
    row: Row
    #: middle over the seeds, or of their means
    measured: float
    #: by seed
    values: tuple[float, ...]
    holds: bool
    verdict: str


def outcomes(experiment: Experiment, runs: Sequence[Run]) -> Iterator[Outcome]:
    """Yield the rows whose cases have run."""
    for row in experiment.rows:
        values = tuple(_values(row.measure, runs))
        if values:
            measured = _of_means(row.measure, runs) if row.measure.is_of_means else middle(values)
            holds, verdict = _judge(row, measured)
            yield Outcome(row, measured, values, holds, verdict)


def _values(measure: Measure, runs: Sequence[Run]) -> Iterator[float]:
    """By seed; with `against`, both runs of one seed: the same jobs, the same luck."""
    ours = {run.seed: run.metrics.get(measure.metric, math.nan) for run in runs if run.label == measure.case}
    if measure.against is None:
        yield from ours.values()
        return
    theirs = {run.seed: run.metrics.get(measure.metric, math.nan) for run in runs if run.label == measure.against}
    for seed in ours.keys() & theirs.keys():
        held_against = measure.times * theirs[seed] + measure.plus
        yield held_against / ours[seed] if ours[seed] else math.inf


def _of_means(measure: Measure, runs: Sequence[Run]) -> float:
    ours = _mean_of(runs, measure.case, measure.metric)
    if measure.against is None:
        return ours
    theirs = _mean_of(runs, best_other(measure, runs), measure.metric)
    return (measure.times * theirs + measure.plus) / ours if ours else math.inf


def best_other(measure: Measure, runs: Sequence[Run]) -> str:
    """Return the case that the measure is held against: of several the one with the smallest mean. Raises ValueError
    where there is none."""
    labels = [label for label in (measure.against, *measure.or_against) if label is not None]
    if not labels:
        raise ValueError(f"{measure.case}: held against nothing")
    return min(labels, key=lambda label: _mean_of(runs, label, measure.chosen_by or measure.metric))


def _mean_of(runs: Sequence[Run], label: str, metric: str) -> float:
    found = metrics_of([run for run in runs if run.label == label], metric)
    return float(np.mean(found)) if found else math.nan


def _judge(row: Row, measured: float) -> tuple[bool, str]:
    bound = row.reported if row.bound is None else row.bound
    if bound is None or row.sense == "shown":
        return True, "shown"
    if math.isnan(measured):
        return False, "not measured"
    slack = row.tolerance * abs(bound)
    off = (measured - bound) / abs(bound) if bound else measured
    if row.sense == "near":
        return abs(measured - bound) <= slack, f"{off:+.0%} of reported"
    is_better = measured >= bound - slack if row.sense == "at-least" else measured <= bound + slack
    if is_better:
        return True, "holds" if row.bound is None else f"holds: {row.sense.replace('-', ' ')} {row.bound:g}"
    return False, f"short by {abs(off):.0%}" if abs(off) <= 1 else f"short: {1 + off:.1f} times reported"


def middle(values: Sequence[float]) -> float:
    known = [x for x in values if not math.isnan(x)]
    return float(np.median(known)) if known else math.nan


def span(values: Sequence[float]) -> tuple[float, float]:
    known = [x for x in values if not math.isnan(x)]
    return (min(known), max(known)) if known else (math.nan, math.nan)


def metrics_of(runs: Sequence[Run], metric: str) -> list[float]:
    return [run.metrics.get(metric, math.nan) for run in runs]


def conditions(experiment: Experiment, runs: Sequence[Run]) -> list[str]:
    """List seeds, clusters and loads, each once for all cases that share it."""
    seeds = sorted({run.seed for run in runs})
    said = [f"seeds {seeds[0]}..{seeds[-1]}" if len(seeds) > 1 else f"seed {seeds[0]}"] if seeds else []
    found = [*_shared(experiment.cases, _cluster), *_shared(experiment.cases, _load)]
    return [*said, *dict.fromkeys(found)]


def _shared(cases: Sequence[AnyCase], say: Callable[[Case], str]) -> Iterator[str]:
    by_text: dict[str, list[str]] = {}
    for case in cases:
        text = say(case) if isinstance(case, Case) else case.conditions
        by_text.setdefault(text, []).append(case.label)
    for text, labels in by_text.items():
        yield text if len(by_text) == 1 else f"{text}: {'; '.join(labels)}"


def _cluster(case: Case) -> str:
    shape = case.shape
    return (
        f"{shape.nodes} nodes x {shape.slots} slots, heartbeat {shape.heartbeat_s:g} s, polling {shape.am_poll_s:g} s, "
        f"start gap {shape.start_gap_s:g} s after {shape.prepare_s:g} s of preparing, "
        f"out of turn {'on' if case.system.out_of_turn else 'off'}, "
        f"decisions at {'asks and heartbeats' if case.system.at_asks else 'heartbeats'}{_troubles(case)}"
    )


def _troubles(case: Case) -> str:
    """What is not as it should be."""
    shape = case.shape
    said = [
        f"noise {shape.noise:g}" if shape.noise else "",
        f"speeds {_series(shape.speeds)}" if set(shape.speeds) != {1.0} else "",
        f"sizes {_series(shape.sizes)}" if set(shape.sizes) != {1.0} else "",
        f"crowding {shape.crowding:g}" if shape.crowding else "",
        f"network {shape.network_s:g} s" if shape.network_s != NETWORK_S else "",
        f"{len(shape.failures)} failures" if shape.failures else "",
    ]
    return "".join(f", {text}" for text in said if text)


def _series(numbers: Sequence[float]) -> str:
    return "/".join(f"{number:g}" for number in numbers)


def _load(case: Case) -> str:
    drawn = case.workload
    how = {
        "poisson": f"Poisson arrivals at {drawn.arrivals.load:g} of the slots",
        "burst": "all submitted at once",
        "recorded": "arriving as recorded",
    }[drawn.arrivals.kind]
    at_once = case.system.jobs_at_once
    if case.limits:
        how += f", the best of {', '.join(map(str, case.limits))} at a time"
    elif at_once:
        how += f", {at_once} at a time"
    ends = "" if case.horizon_s is None else f", {case.horizon_s:g} s long"
    return f"{drawn.name}, {drawn.jobs} jobs, {how}{ends}"
