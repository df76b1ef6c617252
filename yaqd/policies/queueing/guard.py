"""What a policy that others brought along may do to the daemon that calls it: nothing.

One that raises, or returns what is no answer, is not asked again by this process: a shipped policy answers in its
place, from that call on. Whoever has to go on living says so with `survive` and is told once of each; elsewhere, in the
simulator and in tests of the policy, the exception surfaces, so that its author sees it.
"""

from asyncio import CancelledError
from collections.abc import Callable
from traceback import extract_tb
from typing import Any, Final

Tell = Callable[[str], None]

#: who is told; empty: nobody here has to survive
_told: Final[list[Tell]] = []


def survive(tell: Tell | None) -> None:
    """From now on no foreign policy's exception surfaces in this process; `tell` hears of each policy that is given up.
    None: they surface."""
    _told[:] = [] if tell is None else [tell]


class Guarded:
    """A foreign policy, called as it is called itself."""

    def __init__(
        self, what: str, policy: Callable[..., Any], instead: Callable[..., Any], answer: Callable[[Any], Any]
    ) -> None:
        """`what` is said when it is given up, before why; `instead` answers from then on. `answer` gives what it
        returned in the form that callers rely on, and raises TypeError or ValueError where it has not that form."""
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
                raise
            self._is_given_up = True
            _told[0](f"{self._what}: {_where(error)}")
            return self._instead(*args)


def _where(error: BaseException) -> str:
    """The last line of its traceback, and what it says."""
    frames = extract_tb(error.__traceback__)
    at = f" ({frames[-1].filename}, line {frames[-1].lineno}, in {frames[-1].name})" if frames else ""
    return f"{type(error).__name__}: {str(error)[:500]}{at}"
