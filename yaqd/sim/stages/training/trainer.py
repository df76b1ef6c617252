"""One run of training: generations until the time is over, held-out numbers, a checkpoint a minute, weights."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from hashlib import sha256
from itertools import count
from json import dumps
from pathlib import Path
from typing import Any, Final

import numpy as np

from yaqd.policies.clotho.weights import pack
from yaqd.policies.curves.samples import Floats, Ints
from yaqd.sim.stages.training.begin import beginning
from yaqd.sim.stages.training.checkpoint import CheckpointError, read_checkpoint, write_checkpoint
from yaqd.sim.stages.training.evolution import SearchTerms, evolve, losses
from yaqd.sim.stages.training.gradient import GradientTerms, ascend
from yaqd.sim.stages.training.settings import HELD_OUT_SEEDS, Setting, even, hundred, nominal
from yaqd.sim.stages.training.state import TrainingState, begin_training
from yaqd.sim.stages.training.workers import Spread, spread_over
from yaqd.sim.workloads.graphs import GraphSet

CHECKPOINT_S: Final = 60.0
_LOOK_EVERY: Final = 10
#: sequences that say how far training is: of batches, streams, ten jobs on a hundred slots, even graphs
_HELD: Final = {"batch": 48, "stream": 24, "hundred": 48, "even": 16}
_STREAM_JOBS: Final = 150
#: what weights tell of themselves has to fit beside them: rows of the curve, what they began with and what that began
#: with, characters of a command
_ROWS_TOLD: Final = 64
_STARTS_TOLD: Final = 3
_COMMAND_TOLD: Final = 1500


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
    #: which weights it began with
    _begun: str = field(init=False, repr=False)
    _held: dict[str, list[Setting]] = field(init=False, repr=False, default_factory=dict)

    def begin(self, weights: Floats | None = None, told: Mapping[str, Any] = {}) -> None:
        """Begin anew, from given weights where there are some; `told`: what they tell of themselves."""
        self.state = begin_training(self._beginning() if weights is None else weights)
        self._begun = _digest(self.state.weights)
        self.best, self.curve, self.start = self.state.weights.copy(), [], dict(told)

    def _beginning(self) -> Floats:
        return beginning(self.terms.seed, self.imitates)

    def resume(self, weights: Floats | None = None) -> None:
        """Go on from the checkpoint; `weights`: as when it began. Raises CheckpointError."""
        self.state, self.best, told = read_checkpoint(self.checkpoint, self.terms)
        # checkpoints of before graphs were told apart do not say theirs
        if told.get("graphs", mark := mark_of(self.graphs, self.among)) != mark:
            raise CheckpointError(f"{self.checkpoint} is of a run with other graphs; --resume wants the same")
        begun = _digest(self._beginning() if weights is None else weights)
        # nor those of before beginnings were
        if (known := told.get("begun", begun)) != begun:
            raise CheckpointError(
                f"{self.checkpoint} began with other weights: --resume wants --start or --from-nothing as then"
            )
        self.curve, self.start, self._begun = told["curve"], told["start"], known

    def run(self, seconds: float, generations: int | None = None) -> None:
        """Train until the time is over, or so many generations are."""
        began = saved = self.clock()
        spent_s = self.curve[-1]["seconds"] if self.curve else 0.0
        self.save()  # a first generation may take a while
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
        told = {"curve": self.curve, "start": self.start, "graphs": mark_of(self.graphs, self.among)}
        told["begun"] = self._begun
        write_checkpoint(self.checkpoint, self.terms, self.state, self.best, told)

    def weights(self, command: str) -> bytes:
        """Return the best weights so far as bytes, with the command, the seed and the curve."""
        told: dict[str, Any] = {
            "command": _short(command),
            "seed": self.terms.seed,
            "curve": _thinned(self.curve, _ROWS_TOLD),
        }
        return pack(self.best, told | _begun_with(self.start, _STARTS_TOLD))

    def _look(self, seconds: float) -> None:
        if self.curve and self.curve[-1]["generation"] == self.state.generation:
            return
        if not self._held:
            self._held = held_out(self.graphs, self.among, self.terms.slots)
        ratios = held_ratios(self._held, self.state.weights, self.terms.makespan)
        row = {name: round(ratio, 4) for name, ratio in ratios.items()}
        if not self.curve or geometric(ratios) <= min(geometric(one) for one in self.curve):
            self.best = self.state.weights.copy()
        self.curve.append({"generation": self.state.generation, "seconds": round(seconds, 1), **row})
        said = ", ".join(f"{name} {ratio:.4f}" for name, ratio in ratios.items())
        self.told(f"held out after {self.state.generation}: {said}")


def _digest(weights: Floats) -> str:
    return sha256(np.ascontiguousarray(weights, dtype=np.float64).tobytes()).hexdigest()


def mark_of(graphs: GraphSet, among: Ints) -> str:
    """Return what tells the graphs of one run from those of another."""
    digest = sha256()
    for array in (among, *(getattr(graphs, each.name) for each in fields(graphs))):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _thinned(curve: Sequence[dict[str, float]], rows: int) -> list[dict[str, float]]:
    """Return a curve in so many rows at most: evenly, the first and the last among them."""
    if len(curve) <= rows:
        return list(curve)
    return [curve[round(at * (len(curve) - 1) / (rows - 1))] for at in range(rows)]


def _short(command: str) -> str:
    """Return a command whose JSON has a bound, and which can be written: names of files need not be text."""
    command = command.encode(errors="replace").decode()
    return command if len(dumps(command)) <= _COMMAND_TOLD else f"{command[:100]} ..."


def _begun_with(told: Mapping[str, Any], deep: int) -> dict[str, Any]:
    """Return what weights say of those that they began with: command, seed, how well these did."""
    if not told or not deep:
        return {}
    curve = told.get("curve") or []
    found = {"command": _short(str(told.get("command", ""))), "seed": told.get("seed"), "curve": curve[-1:]}
    start = told.get("start")
    return {"start": found | _begun_with(start if isinstance(start, Mapping) else {}, deep - 1)}


def held_out(graphs: GraphSet, among: Ints, slots: int = 0) -> dict[str, list[Setting]]:
    """Return sequences of each kind that training never sees. `slots`: as in the terms."""
    seeds = count(HELD_OUT_SEEDS)
    made: dict[str, Callable[[int], Setting]] = {
        "batch": lambda seed: nominal(graphs, seed, 20, False, among),
        "stream": lambda seed: nominal(graphs, seed, _STREAM_JOBS, True, among),
        "hundred": lambda seed: hundred(graphs, seed, among, slots or 100),
        "even": lambda seed: even(graphs, seed, among, slots),
    }
    return {name: [make(next(seeds)) for _ in range(_HELD[name])] for name, make in made.items()}


def held_ratios(held: Mapping[str, list[Setting]], weights: Floats, makespan: bool = False) -> dict[str, float]:
    """Return the ratio to the plain heuristic on each kind of sequence: below 1 is better."""
    return {name: float(np.exp(losses([weights], settings, makespan)[0])) for name, settings in held.items()}


def geometric(row: Mapping[str, float]) -> float:
    """Return the geometric mean of a row's ratios."""
    return float(np.exp(np.mean([np.log(ratio) for name, ratio in row.items() if name in _HELD])))
