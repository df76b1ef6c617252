"""Runs what the store does not have yet: capacities that set loads, then the trials seed by seed, then more capacities.

Seed by seed, so that a run that was ended early has all cells with fewer seeds, and not some cells with all.
"""

from collections.abc import Callable, Iterator, Sequence
from statistics import fmean
from typing import Final

from yaqd.model.values import value
from yaqd.sim.experiments.runner import Progress, run_all
from yaqd.sim.study.design import StudyCell
from yaqd.sim.study.store import FinishedTrial, StudyStore
from yaqd.sim.study.trial import StudyTrial

#: processor time of a trial by its tasks, s a task, as one core of 2026 takes it: queues at nodes report at each beat,
#: and Hadoop's rules are gone through step by step
_QUEUED_S: Final = 2.4e-4
_STOCK_S: Final = 1.2e-4
_PLAIN_S: Final = 6e-5


@value()
class Wanted:
    """Trials that are not in the store."""

    capacity: tuple[StudyTrial, ...]
    #: None where the capacities are not known yet, so that loads are not
    trials: tuple[StudyTrial, ...] | None
    #: how many runs are wanted after the capacities
    later: int
    #: of all of them, processor time, s
    estimate_s: float


def capacity_of(cell: StudyCell, store: StudyStore) -> float | None:
    """Return the part of the slots that the cell's load is a part of; None: not all its runs are there."""
    found = capacities(cell.capacity_trials(), store)
    return fmean(found) if found else None


def capacities(trials: Sequence[StudyTrial], store: StudyStore) -> list[float]:
    """Return what saturated runs have measured, as parts of the slots; nothing unless all of them are there."""
    found = [store.found.get(trial.key) for trial in trials]
    return [one.figures["capacity"] for one in found if one is not None] if None not in found else []


def wanted(cells: Sequence[StudyCell], seeds: Sequence[int], store: StudyStore) -> Wanted:
    """Return what is to be run for these cells and seeds."""
    capacity = _missing((trial for cell in cells for trial in cell.capacity_trials()), store)
    own = _missing((trial for cell in cells for trial in cell.own_capacity_trials()), store)
    if not capacity:
        known = [(cell, capacity_of(cell, store)) for cell in cells]
        loaded = _missing((c.trial(seed, part) for seed in seeds for c, part in known if part is not None), store)
        trials = tuple({trial.key: trial for trial in (*loaded, *own)}.values())
        return Wanted((), trials, len(trials), sum(map(estimate_s, trials)))
    # loads are still to be known: as if nothing of them were there
    later = list({(c.ground, c.system, c.load, c.of): c.trial(seeds[0], 1.0) for c in cells}.values())
    before = {trial.key for trial in capacity}
    more = [trial for trial in own if trial.key not in before]
    lasts = sum(map(estimate_s, (*capacity, *more))) + len(seeds) * sum(map(estimate_s, later))
    return Wanted(capacity, None, len(later) * len(seeds) + len(more), lasts)


def _missing(trials: Iterator[StudyTrial], store: StudyStore) -> tuple[StudyTrial, ...]:
    return tuple({trial.key: trial for trial in trials if trial.key not in store.found}.values())


def estimate_s(trial: StudyTrial) -> float:
    """Return about how much processor time a trial takes, s."""
    if trial.system.name == "yaq-c":
        return trial.ground.tasks * _QUEUED_S
    return trial.ground.tasks * (_STOCK_S if trial.system.rules == "stock" else _PLAIN_S)


def run_study(
    cells: Sequence[StudyCell],
    seeds: Sequence[int],
    store: StudyStore,
    digest: str,
    *,
    workers: int = 1,
    progress: Progress = lambda done, total, what: None,
) -> int:
    """Run all that is missing, into the store, which is open for writing; return how many trials that were.

    `digest`: of the code that runs. Raises ValueError or Stuck for a cell that cannot be run, StoreError where the
    store has results of other code.
    """
    store.check(digest)
    first = wanted(cells, seeds, store)
    total = len(first.capacity) + first.later
    ran = _run(first.capacity, store, digest, workers, _counted(progress, 0, total))
    trials = wanted(cells, seeds, store).trials or ()
    return ran + _run(trials, store, digest, workers, _counted(progress, ran, ran + len(trials)))


def _counted(progress: Progress, before: int, total: int) -> Callable[[int, str], None]:
    return lambda done, what: progress(before + done, total, what)


def _run(
    trials: Sequence[StudyTrial], store: StudyStore, digest: str, workers: int, tell: Callable[[int, str], None]
) -> int:
    for done, (at, (figures, took_s)) in enumerate(run_all(trials, workers), 1):
        store.add(trials[at], FinishedTrial(figures, took_s, digest))
        tell(done, f"{trials[at].system.name}, seed {trials[at].seed}")
    return len(trials)
