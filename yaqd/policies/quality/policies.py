"""The policies by name. Each takes the jobs and what there is, and returns every job's cores with a reason."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import numpy as np

from yaqd.policies.curves.drops import drops_at
from yaqd.policies.curves.samples import Bools, Floats, Ints
from yaqd.policies.quality.facts import MILLI, Division, Reason, Shares, TrainingJobs
from yaqd.policies.quality.greedy import Greedy
from yaqd.policies.quality.levels import admitted, in_units, level, raised
from yaqd.policies.quality.worth import IterationRates, Worth, rates_of, worth_of
from yaqd.policies.registry import PolicyTable, calls

QualityPolicy = Callable[[TrainingJobs, Division], Shares]

#: what a job's end is worth, in units of its whole predicted fall: .005 to .02 do as well, .1 costs early quality
END_WORTH: Final = 0.01
#: a core that moves is expected to stay for so many epochs: in these it must gain what the move costs
STAY_EPOCHS: Final = 10.0
_STEPS: Final = 40


def fair(jobs: TrainingJobs, division: Division) -> Shares:
    """Divide equally, by weight; what a job cannot use goes to the others."""
    return _by_level(jobs, division, jobs.weight)


def goodput(jobs: TrainingJobs, division: Division) -> Shares:
    """Make the power mean (p = -1) of all speedups over the equal share as large as it gets.

    After Pollux (Qiao et al., OSDI 2021), where every iteration is a full batch, so that goodput is throughput.
    """
    rates = rates_of(jobs, division.epoch_s)
    equal = np.clip(division.milli / MILLI / max(1, len(jobs)), jobs.floor / MILLI, np.maximum(jobs.cap, 1) / MILLI)
    equally = rates.done(equal[:, None])[:, 0]
    return _by_level(jobs, division, np.sqrt(np.maximum(jobs.weight * rates.work_s * equally, 1e-12)))


def las(jobs: TrainingJobs, division: Division) -> Shares:
    """Serve those that were served least, by weight, until they have had as much as the next ones."""
    starts = jobs.attained_s / np.maximum(jobs.weight, 1e-12) / division.epoch_s * MILLI / division.unit
    return _by_level(jobs, division, jobs.weight, starts, Reason.LEAST_SERVED)


def srpt(jobs: TrainingJobs, division: Division) -> Shares:
    """Give the jobs with the least work left, by weight, as much as they can use."""
    left = np.where(np.isfinite(jobs.left), jobs.left, 1e12) * jobs.work_s / np.maximum(jobs.weight, 1e-12)
    order = np.argsort(left, kind="stable")
    floors, caps = _limits(jobs, division, order)
    room = (caps - floors)[order]
    free = division.units - int(floors.sum())
    units = floors.copy()
    units[order] += np.clip(free - (np.cumsum(room) - room), 0, room)
    return _shares(jobs, division, units, Reason.SHORTEST)


def slaq_total(jobs: TrainingJobs, division: Division) -> Shares:
    """Make the total of all predicted normalized falls in the epoch as large as it gets: the paper's greedy."""
    return _filled(jobs, division, worth_of(jobs, jobs.largest))


def finish(jobs: TrainingJobs, division: Division) -> Shares:
    """Give a core-second to whom it is worth most over the job's best horizon.

    Worth is the predicted fall, as a part of the job's whole fall, and a little for its end. The paper's greedy looks
    one epoch ahead and never ends a job that has nearly converged; here the end is worth some of the way to it.
    """
    return _filled(jobs, division, worth_of(jobs, whole_falls(jobs), END_WORTH))


def slaq_maxmin(jobs: TrainingJobs, division: Division) -> Shares:
    """Make the largest predicted normalized loss after the epoch as small as it gets."""
    worth, rates = _plain(jobs), rates_of(jobs, division.epoch_s)
    above = worth.worth[:, -1]
    unit = division.unit / MILLI
    floors, caps = _limits(jobs, division, np.argsort(-above * jobs.weight, kind="stable"))

    def needed(loss: float) -> Ints:
        """Return the units with which no job's predicted loss is above `loss`, where a cap lets it."""
        fall = np.clip(above - loss / np.maximum(jobs.weight, 1e-12), 0.0, above)
        cores = np.minimum(rates.cores(_until(worth, fall)) / unit, 1e15)
        return np.clip(np.ceil(cores - 1e-9).astype(np.int64), floors, caps)

    low, high = 0.0, float((above * jobs.weight).max(initial=0.0))
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if int(needed(middle).sum()) <= division.units:
            high = middle
        else:
            low = middle
    units = needed(high)
    greedy = Greedy(worth, rates, unit)
    loss = (above - greedy.gains(units)) * jobs.weight
    first = np.argsort(-loss, kind="stable")
    first = first[units[first] < caps[first]][: division.units - int(units.sum())]
    units[first] += 1
    units = greedy.fill(units, caps, division.units - int(units.sum()))
    return _shares(jobs, division, units, Reason.GAIN)


def whole_falls(jobs: TrainingJobs) -> Floats:
    """Return each job's predicted fall from its first loss to its end, above 0."""
    last = np.where(np.isfinite(jobs.left), jobs.left, np.inf)[:, None]
    return np.maximum(np.maximum(jobs.fallen, 0.0) + drops_at(jobs.drops, last)[:, 0], jobs.largest)


def _until(worth: Worth, fall: Floats) -> Floats:
    """Return the iterations after which each job has fallen so far: the first such number."""
    rows = np.arange(len(fall))
    at = np.clip((worth.worth < fall[:, None]).sum(axis=1) - 1, 0, worth.worth.shape[1] - 2)
    low, high = worth.worth[rows, at], worth.worth[rows, at + 1]
    part = np.where(high > low, (fall - low) / np.where(high > low, high - low, 1.0), 0.0)
    start = worth.ahead[rows, at]
    return np.asarray(start + (worth.ahead[rows, at + 1] - start) * np.clip(part, 0.0, 1.0))


def _plain(jobs: TrainingJobs) -> Worth:
    """Return the worth without weights: normalized falls."""
    return worth_of(replace(jobs, weight=np.ones(len(jobs))), jobs.largest)


def _limits(jobs: TrainingJobs, division: Division, order: Ints) -> tuple[Ints, Ints]:
    """Return floors and caps in units, of those that run; the first of `order` run where not all can."""
    caps = np.minimum(jobs.cap // division.unit, division.units)
    floors = np.minimum(-(-jobs.floor // division.unit), caps)
    return admitted(floors, caps, order, division.units)


def _filled(jobs: TrainingJobs, division: Division, worth: Worth) -> Shares:
    rates = rates_of(jobs, division.epoch_s)
    # up to a whole core a job with workers has its worker already
    has = -(-jobs.current // MILLI) * MILLI // division.unit
    gaining = 1.0 / (1.0 + jobs.move_s / (STAY_EPOCHS * division.epoch_s))
    greedy = Greedy(worth, rates, division.unit / MILLI, has, gaining)
    floors = np.minimum(-(-jobs.floor // division.unit), np.minimum(jobs.cap // division.unit, division.units))
    order = np.zeros(0, dtype=np.int64)
    if int(floors.sum()) > division.units:
        order = np.argsort(-greedy.gains(floors) / np.maximum(floors, 1), kind="stable")
    floors, caps = _limits(jobs, division, order)
    used = np.clip(-(-jobs.usable // division.unit), floors, caps)
    units = greedy.fill(floors, used, division.units - int(floors.sum()))
    units = raised(units, caps, division.units - int(units.sum()))
    shares = _shares(jobs, division, units, Reason.GAIN, rates)
    shares.reasons[_would_move(jobs, greedy, units, floors, caps) & (shares.milli == jobs.current)] = Reason.KEPT
    return shares


def _would_move(jobs: TrainingJobs, greedy: Greedy, units: Ints, floors: Ints, caps: Ints) -> Bools:
    """Return which jobs would gain more with the next unit than somebody does with the last, if moves cost nothing."""
    free = units > floors
    if not (jobs.move_s > 0.0).any() or not free.any():
        return np.zeros(len(jobs), dtype=bool)
    gains = greedy.gains(units)
    least = float((gains - greedy.gains(np.maximum(units - 1, 0)))[free].min())
    return (jobs.move_s > 0.0) & free & (units < caps) & (greedy.gains(units + 1) - gains > least * (1.0 + 1e-6))


def _by_level(
    jobs: TrainingJobs, division: Division, speeds: Floats, starts: Floats | None = None, why: Reason = Reason.SHARE
) -> Shares:
    caps = np.minimum(jobs.cap // division.unit, division.units)
    floors = np.minimum(-(-jobs.floor // division.unit), caps)
    if int(floors.sum()) > division.units:
        floors = np.zeros(len(jobs), dtype=np.int64)
    exact = level(speeds, floors.astype(np.float64), caps.astype(np.float64), float(division.units), starts)
    return _shares(jobs, division, in_units(exact, caps, division.units), why)


def _shares(
    jobs: TrainingJobs, division: Division, units: Ints, why: Reason, rates: IterationRates | None = None
) -> Shares:
    rates = rates or rates_of(jobs, division.epoch_s)
    milli = units * division.unit
    done = np.minimum(rates.done(milli[:, None] / MILLI)[:, 0], np.maximum(jobs.left, 0.0))
    gains = drops_at(jobs.drops, done[:, None])[:, 0] / whole_falls(jobs)
    reasons = np.full(len(jobs), int(why))
    if why is not Reason.SHARE:
        reasons[milli <= jobs.floor] = Reason.FLOOR
    if why is Reason.GAIN:
        reasons[~jobs.is_known & (milli > jobs.floor)] = Reason.NEW
    reasons[milli >= jobs.cap] = Reason.CAP
    reasons[(milli == 0) & (jobs.cap > 0)] = Reason.OUTNUMBERED
    return Shares(milli, gains, reasons)


def _answer(returned: Any) -> Shares:
    """Return what a policy of others answered; raises TypeError, ValueError."""
    if not isinstance(returned, Shares):
        raise TypeError(f"it returned {type(returned).__name__}, not Shares")
    milli = np.asarray(returned.milli, dtype=np.int64)
    gains = np.nan_to_num(np.asarray(returned.gains, dtype=np.float64), posinf=0.0, neginf=0.0)
    reasons = np.asarray(returned.reasons, dtype=np.int64)
    if not milli.shape == gains.shape == reasons.shape or milli.ndim != 1:
        raise ValueError("its arrays are not of one length")
    return Shares(milli, gains, reasons)


#: entry points `yaqd.quality`
QUALITY: Final[PolicyTable[QualityPolicy]] = PolicyTable(
    "quality",
    {
        "finish": finish,
        "slaq-total": slaq_total,
        "slaq-maxmin": slaq_maxmin,
        "fair": fair,
        "las": las,
        "srpt": srpt,
        "goodput": goodput,
    },
    instead="fair",
    guard=calls(_answer),
)
