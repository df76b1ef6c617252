"""A channel that tests listen with."""

from collections.abc import Callable, Mapping

from yaqd.ml import Said


class Watched:
    """Keeps losses and the last checkpoint, which each report must offer; says stop in one iteration."""

    def __init__(self, stop_at: int = -1, saved: bytes | None = None) -> None:
        self.stop_at, self.saved = stop_at, saved
        self.losses: dict[int, float | None] = {}
        self.cores = 1.0

    def report(
        self,
        iteration: int,
        loss: float | None,
        checkpoint: Callable[[], bytes] | None,
        metrics: Mapping[str, float],
    ) -> Said:
        self.losses[iteration] = loss
        assert checkpoint is not None
        self.saved = checkpoint()
        return Said(self.cores, stop=iteration == self.stop_at)

    def last_checkpoint(self) -> bytes | None:
        return self.saved
