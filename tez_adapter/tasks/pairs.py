"""Pairs as a job's functions yield them: what would pass for one and is none is refused."""

from collections.abc import Iterator
from itertools import chain
from typing import Any, Final

from yaqd.mapreduce.errors import JobError

Pair = tuple[Any, Any]

#: of two parts each comes apart like a pair: "ab" as the key "a" with the value "b"
_NO_PAIRS: Final = (str, bytes, bytearray, set, frozenset, dict)
_SHOWN_CHARS: Final = 60
ENDED_EARLY: Final = (
    "map() raised StopIteration, as next() does of an iterator that has no more: "
    "give next() a default, as in next(words, None)"
)


class Reached:
    """Nothing to iterate over, and whether somebody came here.

    To `map` and `chain` a StopIteration out of the job's own code is the end of the records. Without this the rest of
    them would be lost without a word.
    """

    is_reached = False

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        self.is_reached = True
        raise StopIteration


def refuse_no_pairs(function: str, error: Exception, file: str) -> None:
    """Raises JobError where what a function of the job yielded could not be taken apart, which `file` tried.

    An exception out of the job's own lines is not meant.
    """
    if not isinstance(error, JobError) and is_raised_in(error, file):
        raise JobError(f"{function} must yield pairs of key and value: {error}") from error


def is_raised_in(error: BaseException, file: str) -> bool:
    """Returns whether the exception comes from this source file itself, and not from what it called."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code.co_filename == file


def looked_at(pairs: Iterator[Pair], function: str) -> Iterator[Pair]:
    """Returns the same pairs. Raises JobError where the first of them is none.

    To look at each would take as long as to count it.
    """
    for first in pairs:
        if isinstance(first, _NO_PAIRS):
            shown = repr(first)
            shown = shown if len(shown) <= _SHOWN_CHARS else shown[: _SHOWN_CHARS - 3] + "..."
            raise JobError(
                f"{function} must yield pairs of key and value: {shown} is of type {type(first).__name__}; "
                "write `yield key, value`, or return a list of such pairs"
            )
        return chain((first,), pairs)
    return iter(())
