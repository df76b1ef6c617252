"""Draws that belong to a task: made of the seed, the stage and the task's number, so the same under every policy."""

from typing import Final

from yaqd.sim.workloads.graphs import POINTS

_MASK: Final = (1 << 64) - 1
_STEP: Final = 0x9E3779B97F4A7C15


def _mixed(value: int) -> int:
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


def uniform(seed: int, stage: int, task: int, which: int) -> float:
    """Return a number of [0, 1) that belongs to a task."""
    value = _mixed((seed + _STEP) & _MASK)
    value = _mixed((value + _STEP * (stage + 1)) & _MASK)
    value = _mixed((value + _STEP * (2 * task + which + 1)) & _MASK)
    return (value >> 11) * (1.0 / (1 << 53))


def point_of(containers: int, chance: float) -> int:
    """Return the recorded executor count that a job of so many takes its duration from; between two it is drawn.

    As in the public simulator: the nearer a count is to the larger one, the likelier the smaller one is taken.
    """
    if containers <= POINTS[0]:
        return 0
    for at in range(1, len(POINTS)):
        if containers == POINTS[at]:
            return at
        if containers < POINTS[at]:
            left = POINTS[at - 1]
            return at - 1 if chance * (POINTS[at] - left) < containers - left else at
    return len(POINTS) - 1
