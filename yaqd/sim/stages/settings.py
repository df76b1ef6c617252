"""Settings in which policies of stages are measured: loads by seed, and the rules.

Seeds from 30000 on are measured and nothing else: training and tuning use others.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from yaqd.policies.curves.samples import Ints
from yaqd.sim.stages.rules import DECIMA, Rules
from yaqd.sim.workloads.graphs import GraphLoad, GraphSet, batch, draw_load, stream

MEASURED_SEED: Final = 30_000
#: what `unseen` leaves out
UNSEEN_QUERIES: Final = (17, 18, 19, 20, 21, 22)
UNSEEN_SIZE: Final = 100


@dataclass(frozen=True, slots=True)
class Measured:
    """A setting: loads by seed, and the rules."""

    name: str
    seeds: int
    rules: Rules
    #: (set of graphs, seed) -> load
    load: Callable[[GraphSet, int], GraphLoad] = field(repr=False)

    def loads(self, graphs: GraphSet, many: int | None = None, further: int = 0) -> list[GraphLoad]:
        """Return the first loads, all unless said otherwise. `further`: 1 and more for others of the same kind."""
        seeds = self.seeds if many is None else min(many, self.seeds)
        first = MEASURED_SEED + 1_000 * further
        return [self.load(graphs, first + at) for at in range(seeds)]


def _only(graphs: GraphSet, queries: tuple[int, ...] = (), size: int = 0) -> Ints:
    """Return graphs of some queries, or of one input size."""
    return np.flatnonzero(np.isin(graphs.query, queries) | (graphs.size == size))


_HUNDRED: Final = Rules(100)
SETTINGS: Final[Mapping[str, Measured]] = {
    one.name: one
    for one in (
        Measured("stream", 20, DECIMA, lambda graphs, seed: stream(graphs, seed)),
        Measured("batch", 60, DECIMA, lambda graphs, seed: batch(graphs, seed)),
        Measured("paper", 60, _HUNDRED, lambda graphs, seed: batch(graphs, seed, jobs=10)),
        Measured("cheap-moves", 20, Rules(50, 0.1), lambda graphs, seed: stream(graphs, seed)),
        Measured("estimates-stream", 20, DECIMA, lambda graphs, seed: stream(graphs, seed, 0.5)),
        Measured("estimates-batch", 60, DECIMA, lambda graphs, seed: batch(graphs, seed, 0.5)),
        Measured(
            "unseen-queries", 60, DECIMA, lambda graphs, seed: batch(graphs, seed, among=_only(graphs, UNSEEN_QUERIES))
        ),
        Measured(
            "unseen-size", 60, DECIMA, lambda graphs, seed: batch(graphs, seed, among=_only(graphs, (), UNSEEN_SIZE))
        ),
        Measured("unseen-slots", 20, _HUNDRED, lambda graphs, seed: draw_load(graphs, seed, 201, 9.7)),
    )
}
