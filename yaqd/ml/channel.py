"""How reports leave a training program, and what comes back."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Said:
    """What a report is answered with. Later versions add fields; none changes."""

    #: cores that the job may use now, in parts of a core too
    cores: float
    #: end now: what was reached is wanted, and no further iteration
    stop: bool = False


def made(checkpoint: Callable[[], bytes]) -> bytes:
    """Return what a program's function gives as its checkpoint. Raises TypeError where that is no bytes."""
    data = checkpoint()
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"report(checkpoint=...) gave a {type(data).__name__}: return bytes")
    return bytes(data)


def back_text(iteration: int, last: int) -> str:
    """Say that a report's iteration does not rise. `last`: of the report before it."""
    return f"iteration {iteration} follows {last}: numbers must rise; others are left out"


class Channel(Protocol):
    """Carries the reports of one program.

    `report` is called in the training loop: it must not block, nor raise for want of a cluster, and takes a few
    microseconds. Numbers are checked already: iterations are integers, though not always rising ones; losses and
    metrics are floats, NaN and infinity among them.
    """

    def report(
        self,
        iteration: int,
        loss: float | None,
        checkpoint: Callable[[], bytes] | None,
        metrics: Mapping[str, float],
    ) -> Said:
        """Take one report. `checkpoint` is called, before this returns, only when a checkpoint is wanted."""
        ...

    def last_checkpoint(self) -> bytes | None:
        """Return what `checkpoint` gave to an earlier attempt of this job last; None where there is nothing."""
        ...
