"""What every generator of configurations does."""

from typing import Any, Protocol

from yaqd.ml.space import Params


class GeneratorError(Exception):
    """A generator that cannot be made: what is missing, and what to do."""


class Generator(Protocol):
    """Proposes the values of trials by their numbers, from 0.

    `propose` of a plain generator depends on the seed and the number alone, so a job manager that starts again gets the
    same. An adaptive one depends on what it was told, and may take seconds: an event loop calls it in a thread.
    """

    @property
    def size(self) -> int | None:
        """How many configurations there are; None: no end."""
        ...

    @property
    def is_adaptive(self) -> bool:
        """Whether a proposal depends on what it was told."""
        ...

    def propose(self, number: int) -> Params | None:
        """Return the values of a trial; None: there are no more."""
        ...

    def told(self, number: int, params: Any, value: float, is_final: bool) -> None:
        """Take notice of a trial's best metric so far, oriented to rise; `is_final`: it has ended."""
        ...

    def close(self) -> None:
        """Let go of what it holds."""
        ...
