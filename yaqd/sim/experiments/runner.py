"""Runs an experiment: every case with every seed, a searched limit with every candidate."""

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from functools import lru_cache
from multiprocessing import get_context
from typing import Any, Final, Protocol, TypeVar

from yaqd.model.values import value
from yaqd.policies.guard import policy_fault
from yaqd.sim.experiments.exploring import ExploreCase, run_exploring
from yaqd.sim.experiments.measures import metrics, shares
from yaqd.sim.experiments.model import AnyCase, Case, Experiment, Run
from yaqd.sim.experiments.outcome import metrics_of, middle
from yaqd.sim.experiments.staging import StagingCase, run_staging
from yaqd.sim.experiments.training import PredictionCase, TrainingCase, run_prediction, run_training
from yaqd.sim.simulation import simulate
from yaqd.sim.workload import Workload
from yaqd.sim.workloads import Drawn, draw

R_co = TypeVar("R_co", covariant=True)
#: called when a run is over with how many are, how many there are to be, and which it was
Progress = Callable[[int, int, str], None]
#: of `quick`: this part of the nodes and of the jobs, one seed, two limits
QUICK_PART: Final = 10


class PolicyFailed(Exception):
    """A policy of others raised, or returned what is no answer; its own exception is the cause."""


def quick(experiment: Experiment) -> Experiment:
    """Return the experiment in small, for tests and for a first look."""
    return replace(experiment, cases=tuple(map(_smaller, experiment.cases)), seeds=1)


def _smaller(case: AnyCase) -> AnyCase:
    if not isinstance(case, Case):
        return case.smaller(QUICK_PART)
    return replace(
        case,
        workload=replace(case.workload, jobs=max(4, case.workload.jobs // QUICK_PART)),
        shape=replace(case.shape, nodes=max(4, case.shape.nodes // QUICK_PART)),
        limits=case.limits[:2],
    )


@value()
class _Part:
    """One simulation to be run; `at` tells the case and the candidate that it belongs to."""

    at: tuple[int, int]
    case: AnyCase
    seed: int
    limit: int | None
    #: instead of the drawn one
    workload: Workload | None

    def run(self) -> Run:
        try:
            return self._run_any()
        except BaseException as error:  # foreign code, which may raise SystemExit too
            fault = policy_fault(error)
            if fault is None:
                raise
            # not the exception itself: one of foreign code may not come through from a worker process
            raise PolicyFailed(f"{fault}, with {self}") from error

    def _run_any(self) -> Run:
        case = self.case
        if isinstance(case, TrainingCase):
            metrics_, times, course = run_training(case, self.seed)
            return Run(case.label, self.seed, None, metrics_, times, course)
        if isinstance(case, PredictionCase):
            return Run(case.label, self.seed, None, run_prediction(case, self.seed))
        if isinstance(case, ExploreCase):
            return Run(case.label, self.seed, None, *run_exploring(case, self.seed))
        if isinstance(case, StagingCase):
            return Run(case.label, self.seed, None, *run_staging(case, self.seed))
        workload = self.workload or drawn_once(case.workload, case.shape.total_slots, self.seed)
        return run_case(case, workload, self.seed, self.limit)

    def __str__(self) -> str:
        limit = "" if self.limit is None else f", {self.limit} jobs at a time"
        return f"{self.case.label}, seed {self.seed}{limit}"


def run_experiment(
    experiment: Experiment,
    seeds: Sequence[int],
    progress: Progress = lambda done, total, what: None,
    *,
    workers: int = 1,
    workload: Workload | None = None,
) -> list[Run]:
    """Return all runs, in the order of the cases; of a searched case those with its best limit only.

    `workload`: run this one in every case instead of what the case draws. The result does not depend on `workers`.
    Raises `ValueError` or `Stuck` for a case that cannot be run, `PolicyFailed`.
    """
    parts = [
        _Part((at, candidate), case, seed, limit, workload)
        for at, case in enumerate(experiment.cases)
        for candidate, limit in enumerate(case.limits or (None,))
        for seed in seeds
    ]
    ran: dict[int, Run] = {}
    for done, (at, run) in enumerate(run_all(parts, workers), 1):
        ran[at] = run
        progress(done, len(parts), str(parts[at]))
    by_candidate: dict[tuple[int, int], list[Run]] = {}
    for at, part in enumerate(parts):
        by_candidate.setdefault(part.at, []).append(ran[at])
    runs: list[Run] = []
    for at in range(len(experiment.cases)):
        candidates = [found for (case_at, _), found in by_candidate.items() if case_at == at]
        best: list[Run] = min(candidates, key=_typical(experiment.tuned_by))
        runs += best
    return runs


def _typical(metric: str) -> Callable[[list[Run]], float]:
    return lambda runs: middle(metrics_of(runs, metric))


class Runnable(Protocol[R_co]):
    """What is run in a process; the result must be one that can be pickled."""

    def run(self) -> R_co:
        """Run it."""
        ...


def run_all(parts: Sequence[Runnable[R_co]], workers: int) -> Iterator[tuple[int, R_co]]:
    """Yield the index and the result of each part, in the order of their ends; by one worker in their own order."""
    if workers == 1:
        yield from ((at, part.run()) for at, part in enumerate(parts))
        return
    # what a part holds cannot be pickled; a forked process has it anyway
    with ProcessPoolExecutor(workers, get_context("fork"), _adopt, (parts,)) as pool:
        futures = {pool.submit(_run_one, at): at for at in range(len(parts))}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


_parts: list[Runnable[Any]] = []


def _adopt(parts: Sequence[Runnable[Any]]) -> None:
    _parts[:] = parts


def _run_one(at: int) -> Any:
    return _parts[at].run()


@lru_cache(maxsize=16)
def drawn_once(drawn: Drawn, slots: int, seed: int) -> Workload:
    """Draw the workload, or remember it."""
    return draw(drawn, slots, seed)


def run_case(case: Case, workload: Workload, seed: int, limit: int | None = None) -> Run:
    system = case.system if limit is None else replace(case.system, jobs_at_once=limit)
    horizon = math.inf if case.horizon_s is None else case.horizon_s
    result = simulate(case.shape, workload, system, seed, horizon_s=horizon)
    times = tuple(float(x) for x in result.completion_times(from_start=True))
    by_queue = shares(case, result) if len(case.workload.queues) > 1 else {}
    return Run(case.label, seed, limit, metrics(case, workload, result), times, shares=by_queue)
