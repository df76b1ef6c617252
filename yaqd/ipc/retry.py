"""How long to wait before trying again."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Attempts with growing pauses; about twelve seconds in all by default, as Hadoop's ten tries a second apart."""

    #: tries in all, at least 1
    attempts: int = 9
    first_delay_s: float = 0.1
    delay_max_s: float = 4.0
    factor: float = 2.0
    #: each pause is lengthened by up to this share, so that a thousand clients do not come back at once
    jitter: float = 0.2

    def delays(self, random: Callable[[], float]) -> Iterator[float]:
        """Yield the pauses between attempts, in seconds; `random` returns a number in [0, 1)."""
        delay = self.first_delay_s
        for _ in range(self.attempts - 1):
            yield delay * (1 + self.jitter * random())
            delay = min(delay * self.factor, self.delay_max_s)


#: one attempt and no pause
NO_RETRY = RetryPolicy(attempts=1)
