"""The event at hand, as all parts of the machine see it."""

from tez_adapter.core.events import Decision


class Turn:
    def __init__(self) -> None:
        #: seconds on the caller's clock
        self.now = 0.0
        #: decided so far, in the order in which it is to be carried out
        self.out: list[Decision] = []

    def begin(self, now: float) -> None:
        self.now, self.out = now, []
