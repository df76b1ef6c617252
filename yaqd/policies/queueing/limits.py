"""What numbers from outside may be: the one place where estimates, waits and bounds are made harmless.

Masters, nodes and third-party code report what they like, clocks jump. A duration that is not a number, negative or
longer than a life is no information at all and counts as never ending; that is the value that makes nobody wait for it
and lets it pass nobody.
"""

from math import inf
from typing import Final

#: a duration above this is none: 30 years, s
LONGEST_S: Final = 1e9
#: no queue of a node is longer, whatever is reported or configured, tasks
LONGEST_QUEUE: Final = 10_000
#: no node runs more tasks at once as far as a bound is concerned
MOST_SLOTS: Final = 100_000


def duration(seconds: float | None) -> float:
    """Return the same, or inf where it says nothing: None, NaN, negative or absurd."""
    return seconds if seconds is not None and 0.0 <= seconds <= LONGEST_S else inf


def threshold(seconds: float) -> float:
    """Return a limit on a wait: inf (no limit) stays, what is no number or negative becomes 0, the limit that always
    holds."""
    return seconds if seconds >= 0.0 else 0.0


def rank(score: float) -> float:
    """Return a sort key that compares with every other: NaN goes last."""
    return score if score == score else inf


def queue_length(tasks: float, most: int = LONGEST_QUEUE) -> int:
    """Return a whole number of queue slots between 0 and `most`; what is no number is 0, plain Hadoop without
    queues."""
    most = max(0, min(most, LONGEST_QUEUE))
    return int(min(tasks, most)) if tasks > 0 else 0


def slots(count: float) -> int:
    """Return a number of run slots between 0 and `MOST_SLOTS`; NaN is 0."""
    return int(min(count, MOST_SLOTS)) if count > 0 else 0


def fraction(part: float, default: float) -> float:
    """Return the same if it lies in [0, 1], else the default."""
    return part if 0.0 <= part <= 1.0 else default
