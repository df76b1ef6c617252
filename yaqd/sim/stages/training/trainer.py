"""One run of training: generations until the time is over, held-out numbers, a checkpoint a minute, weights."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from yaqd.policies.clotho.weights import pack
from yaqd.policies.curves.samples import Floats, Ints
from yaqd.sim.stages.training.begin import beginning
from yaqd.sim.stages.training.checkpoint import read_checkpoint, write_checkpoint
from yaqd.sim.stages.training.evolution import SearchTerms, evolve, losses
from yaqd.sim.stages.training.gradient import GradientTerms, ascend
from yaqd.sim.stages.training.settings import HELD_OUT_SEEDS, Setting, nominal
from yaqd.sim.stages.training.state import TrainingState, begin_training
from yaqd.sim.stages.training.workers import Spread, spread_over
from yaqd.sim.workloads.graphs import GraphSet

CHECKPOINT_S: Final = 60.0
_LOOK_EVERY: Final = 10
_BATCHES: Final = 24
_STREAMS: Final = 4
_STREAM_JOBS: Final = 150


@dataclass(frozen=True, slots=True)
class Held:
    """How weights do on sequences that no search sees: mean completion time against the plain heuristic's."""

    generation: int
    batch: float
    stream: float

    @property
    def both(self) -> float:
        """Their geometric mean."""
        return float(np.sqrt(self.batch * self.stream))


@dataclass(slots=True)
class Trainer:
    """A run; `clock` tells seconds, `told` hears a line for whoever waits."""

    graphs: GraphSet = field(repr=False)
    among: Ints = field(repr=False)
    #: which trainer it is, and how it goes about it
    terms: SearchTerms | GradientTerms
    checkpoint: Path
    clock: Callable[[], float]
    told: Callable[[str], None] = lambda line: None
    imitates: bool = True
    cores: int = 1
    state: TrainingState = field(init=False, repr=False)
    best: Floats = field(init=False, repr=False)
    curve: list[dict[str, float]] = field(init=False, repr=False)
    #: what the weights that it began with tell of themselves
    start: dict[str, Any] = field(init=False, repr=False)
    _held: list[Setting] = field(init=False, repr=False, default_factory=list)

    def begin(self, weights: Floats | None = None, told: Mapping[str, Any] = {}) -> None:
        """Begin anew, from given weights where there are some; `told`: what they tell of themselves."""
        self.state = begin_training(beginning(self.terms.seed, self.imitates) if weights is None else weights)
        self.best, self.curve, self.start = self.state.weights.copy(), [], dict(told)

    def resume(self) -> None:
        """Go on from the checkpoint. Raises CheckpointError."""
        self.state, self.best, told = read_checkpoint(self.checkpoint, self.terms)
        self.curve, self.start = told["curve"], told["start"]

    def run(self, seconds: float, generations: int | None = None) -> None:
        """Train until the time is over, or so many generations are."""
        began = saved = self.clock()
        spent_s = self.curve[-1]["seconds"] if self.curve else 0.0
        with spread_over(self.cores) as spread:
            while self.clock() - began < seconds and (generations is None or self.state.generation < generations):
                if self.state.generation % _LOOK_EVERY == 0:
                    self._look(spent_s + self.clock() - began)
                self.state, loss = self._advance(spread)
                self.told(f"generation {self.state.generation}: {np.exp(loss):.4f} of the plain heuristic's time")
                if self.clock() - saved > CHECKPOINT_S:
                    self.save()
                    saved = self.clock()
            self._look(spent_s + self.clock() - began)
        self.save()

    def _advance(self, spread: Spread) -> tuple[TrainingState, float]:
        if isinstance(self.terms, GradientTerms):
            return ascend(self.state, self.graphs, self.among, self.terms, spread)
        return evolve(self.state, self.graphs, self.among, self.terms, spread)

    def save(self) -> None:
        """Write the checkpoint."""
        write_checkpoint(self.checkpoint, self.terms, self.state, self.best, {"curve": self.curve, "start": self.start})

    def weights(self, command: str) -> bytes:
        """Return the best weights so far as bytes, with the command, the seed and the curve."""
        told: dict[str, Any] = {"command": command, "seed": self.terms.seed, "curve": self.curve}
        return pack(self.best, told | ({"start": self.start} if self.start else {}))

    def _look(self, seconds: float) -> None:
        if self.curve and self.curve[-1]["generation"] == self.state.generation:
            return
        if not self._held:
            self._held = held_out(self.graphs, self.among)
        batch, stream = held_ratios(self._held, self.state.weights, self.terms.makespan)
        held = Held(self.state.generation, batch, stream)
        if not self.curve or held.both <= min(np.sqrt(one["batch"] * one["stream"]) for one in self.curve):
            self.best = self.state.weights.copy()
        self.curve.append(
            {
                "generation": held.generation,
                "seconds": round(seconds, 1),
                "batch": round(batch, 4),
                "stream": round(stream, 4),
            }
        )
        self.told(f"held out after {held.generation}: batch {batch:.4f}, stream {stream:.4f}")


def held_out(graphs: GraphSet, among: Ints) -> list[Setting]:
    """Return batches, then streams, that training never sees."""
    batches = [nominal(graphs, HELD_OUT_SEEDS + at, 20, False, among) for at in range(_BATCHES)]
    return batches + [nominal(graphs, HELD_OUT_SEEDS + 100 + at, _STREAM_JOBS, True, among) for at in range(_STREAMS)]


def held_ratios(settings: list[Setting], weights: Floats, makespan: bool = False) -> tuple[float, float]:
    """Return the ratio to the plain heuristic on batches and on streams."""
    batch, stream = (
        float(np.exp(losses([weights], part, makespan)[0])) for part in (settings[:_BATCHES], settings[_BATCHES:])
    )
    return batch, stream
