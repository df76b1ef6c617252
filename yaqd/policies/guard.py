"""What a policy that others brought along may do to the daemon that calls it: nothing.

One that raises, or returns what is no answer, is not asked again by this process: a shipped policy answers in its
place, from that call on. Whoever has to go on living says so with `survive` and is told once of each; elsewhere, in the
simulator and in tests of the policy, the exception surfaces with a note of whose it is, so that its author sees it.
"""

from asyncio import CancelledError
from collections.abc import Callable
from traceback import extract_tb
from typing import Any, Final

Tell = Callable[[str], None]

#: in what is said of a policy, between its name and what answers instead
GIVES_WAY: Final = " gives way to "

#: who is told; empty: nobody here has to survive
_told: Final[list[Tell]] = []


def survive(tell: Tell | None) -> None:
    """Let no foreign policy's exception surface in this process from now on.

    `tell` hears of each policy that is given up. None: exceptions surface.
    """
    _told[:] = [] if tell is None else [tell]


class _Note(str):
    """A note on an exception that a policy raised."""

    __slots__ = ()


def policy_fault(error: BaseException) -> str | None:
    """Return which policy raised it, what and where, if it surfaced from one of others."""
    return next((note for note in getattr(error, "__notes__", ()) if isinstance(note, _Note)), None)


class Guarded:
    """A foreign policy, called as it is called itself."""

    def __init__(
        self, what: str, policy: Callable[..., Any], instead: Callable[..., Any], answer: Callable[[Any], Any]
    ) -> None:
        """`what` is said when it is given up, before why, and of an exception that surfaces as far as `GIVES_WAY`;
        `instead` answers from then on. `answer` gives what it returned in the form that callers rely on, and raises
        TypeError or ValueError where it has not that form."""
        self._what = what
        self._policy = policy
        self._instead = instead
        self._answer = answer
        self._is_given_up = False

    def __call__(self, *args: Any) -> Any:
        if self._is_given_up:
            return self._instead(*args)
        try:
            return self._answer(self._policy(*args))
        except (KeyboardInterrupt, CancelledError):  # somebody else's, that came meanwhile
            raise
        except BaseException as error:  # foreign code, which may raise SystemExit too
            if not _told:
                error.add_note(_Note(f"{self._what.partition(GIVES_WAY)[0]}: {_where(error, self._policy)}"))
                raise
            self._is_given_up = True
            _told[0](f"{self._what}: {_where(error, self._policy)}")
            return self._instead(*args)


def _where(error: BaseException, policy: Callable[..., Any]) -> str:
    """What it says, and where in the policy's file it comes from: what that called raised it for a reason there."""
    frames = extract_tb(error.__traceback__)
    code = getattr(policy, "__code__", None)
    own = [frame for frame in frames if code is not None and frame.filename == code.co_filename]
    at = ""
    if own or (frames and code is None):
        frame = (own or frames)[-1]
        at = f" ({frame.filename}, line {frame.lineno}, in {frame.name})"
    elif code is not None:
        at = f" ({code.co_filename}, line {code.co_firstlineno}, what {code.co_name} returned)"
    return f"{type(error).__name__}: {str(error)[:500]}{at}"
