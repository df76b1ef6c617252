"""Max-min shares: everybody's share rises with one level until the whole is given."""

from typing import Final

import numpy as np

from yaqd.policies.curves.samples import Floats, Ints

_TINY: Final = 1e-12


def level(speeds: Floats, floors: Floats, caps: Floats, total: float, starts: Floats | None = None) -> Floats:
    """Return shares clip(speed * (z - start), floor, cap) for the level z at which they add up to `total`.

    `speeds` are above 0. They add up to the floors where those are more than `total`, to the caps where these are less.
    """
    if not len(speeds):
        return np.zeros(0)
    speeds = np.maximum(speeds, _TINY)
    begins = np.zeros(len(speeds)) if starts is None else starts
    caps = np.maximum(caps, floors)
    leaves, stops = begins + floors / speeds, begins + caps / speeds
    turns = np.sort(np.concatenate((leaves, stops)))
    # what all have at each turn: floors, and what has grown by then
    order = np.argsort(leaves, kind="stable")
    ended = np.argsort(stops, kind="stable")
    grown = _grown(turns, leaves[order], speeds[order]) - _grown(turns, stops[ended], speeds[ended])
    at = np.interp(total - floors.sum(), grown, turns)
    return np.asarray(np.clip(speeds * (at - begins), floors, caps))


def _grown(turns: Floats, since: Floats, speeds: Floats) -> Floats:
    """Return at each turn the sum of speed * (turn - since) over those that began before it."""
    many = np.searchsorted(since, turns, side="right")
    by_speed = np.concatenate(([0.0], np.cumsum(speeds)))
    by_start = np.concatenate(([0.0], np.cumsum(speeds * since)))
    return np.asarray(by_speed[many] * turns - by_start[many])


def in_units(exact: Floats, caps: Ints, total: int) -> Ints:
    """Return whole units near `exact` that add up to at most `total`, none above its cap.

    What rounding down leaves goes to the largest parts of a unit, in order of the jobs where they are equal.
    """
    units = np.minimum(np.floor(exact + 1e-9).astype(np.int64), caps)
    over = min(total, int(np.floor(exact.sum() + 1e-6))) - int(units.sum())
    if over > 0:
        open_ = np.flatnonzero(units < caps)
        first = open_[np.argsort(units[open_] - exact[open_], kind="stable")[:over]]
        units[first] += 1
    return units


def raised(units: Ints, caps: Ints, free: int) -> Ints:
    """Return `units` with `free` more among them, the least first, none above its cap."""
    free = min(free, int((caps - units).sum()))
    if free <= 0:
        return units
    exact = level(np.ones(len(units)), units.astype(np.float64), caps.astype(np.float64), float(units.sum()) + free)
    return np.maximum(in_units(exact, caps, int(units.sum()) + free), units)


def admitted(floors: Ints, caps: Ints, order: Ints, total: int) -> tuple[Ints, Ints]:
    """Return the floors and caps of the jobs that run where there is not enough for every floor.

    In `order`, first ones first; the others get 0 of both.
    """
    floors = np.minimum(floors, caps)
    if int(floors.sum()) <= total:
        return floors, caps
    runs = np.zeros(len(floors), dtype=bool)
    runs[order] = np.cumsum(floors[order]) <= total
    return np.where(runs, floors, 0), np.where(runs, caps, 0)
