"""Recorded explorations: published learning curves, and sets that are drawn like HyperDrive's CIFAR-10 (chapter 8).

`taskset`: files of 1,000 configurations as in the taskset of "Deep Power Laws". They are read where they lie and never
shipped. `cifar`: drawn from constants that make Default's times over all orders differ by what the paper reports.
"""

import json
import os
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from yaqd.policies.curves.samples import Floats, Ints
from yaqd.sim.workloads.drawn import WorkloadError

#: an epoch takes so long in the mean, s
EPOCH_S: Final = 60.0
#: the loss of a guess among two classes is ln 2; a little above it counts as a metric of 0
_LOSS_OF_NOTHING: Final = 0.72
_FOLDER: Final = Path("shared/data/taskset")
_VARIABLE: Final = "YAQD_TASKSET"
_BYTES_MAX: Final = 1 << 26
_ROWS_MAX: Final = 100_000
#: of the seeds of draws, so that no two things share their numbers
_ORDER_SEED: Final = 23
_EPOCH_SEED: Final = 24
_CIFAR_SEED: Final = 25
#: epochs and configurations of a drawn set, its target, and the winners that it may have
CIFAR_EPOCHS: Final = 120
CIFAR_ROWS: Final = 100
CIFAR_TARGET: Final = 0.77
CIFAR_WINNERS: Final = range(1, 9)
_CHANCE: Final = 0.1


@dataclass(frozen=True, slots=True, eq=False)
class Recorded:
    """Curves that were recorded, a row for each configuration."""

    name: str
    #: (rows, epochs): the metric, oriented to rise
    values: Floats = field(repr=False)
    #: what an epoch of each row takes, s; of a matrix, each of its epochs
    epoch_s: Floats = field(repr=False)
    #: (rows, hyperparameters), 0 to 1; without columns where nobody knows them
    params: Floats = field(repr=False)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def epochs(self) -> int:
        """How many each row has."""
        return int(self.values.shape[1])

    def took_s(self, row: int, epoch: int) -> float:
        """Return what an epoch of a row takes, s; the first one is 0."""
        return float(self.epoch_s[row] if self.epoch_s.ndim == 1 else self.epoch_s[row, epoch])

    def target(self, rank: int) -> float:
        """Return the maximum of the row that has the rank's highest one."""
        return float(np.sort(self.values.max(axis=1))[-min(rank, len(self))])


def orders(rows: int, many: int, seed: int) -> list[Ints]:
    """Return random orders of the rows, the same for the same seed."""
    return [np.random.default_rng((seed, _ORDER_SEED, at)).permutation(rows) for at in range(many)]


# ---------------------------------------------------------------------------------------------- taskset


def find_taskset() -> Path:
    """Return the folder of the taskset: `YAQD_TASKSET`, or `shared/data/taskset` in this folder or one above.

    Raises WorkloadError where there is none.
    """
    named = os.environ.get(_VARIABLE)
    here = Path.cwd()
    places = [Path(named)] if named else [folder / _FOLDER for folder in (here, *here.parents)]
    for place in places:
        if place.is_dir():
            return place
    raise WorkloadError(
        f"{places[0]}: no such folder; {_VARIABLE} names the one with the taskset's files "
        "(github.com/machinelearningnuremberg/DPL, data/taskset)"
    )


@lru_cache(maxsize=2)
def taskset(folder: Path) -> tuple[Recorded, ...]:
    """Return each file of the folder, in the order of their names. Raises WorkloadError."""
    paths = sorted(folder.glob("*.json"))
    if not paths:
        raise WorkloadError(f"{folder}: no *.json in it")
    return tuple(_read(path, at) for at, path in enumerate(paths))


def _read(path: Path, number: int) -> Recorded:
    try:
        if path.stat().st_size > _BYTES_MAX:
            raise WorkloadError(f"{path}: more than is read ({_BYTES_MAX} bytes)")
        found = json.loads(path.read_text(encoding="utf-8"))
        losses = np.array([_losses(one) for one in found], dtype=np.float64)
        params = np.array([[float(one["hp"][name]) for name in sorted(found[0]["hp"])] for one in found])
    except OSError as error:
        raise WorkloadError(f"{path}: {error.strerror or error}") from None
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError) as error:
        raise WorkloadError(f"{path}: no taskset: {repr(error)[:200]}") from None
    if losses.ndim != 2 or not losses.size or len(losses) > _ROWS_MAX:
        raise WorkloadError(f"{path}: its rows are no 1 to {_ROWS_MAX} curves of one length")
    values = np.nan_to_num(np.clip(1.0 - losses / _LOSS_OF_NOTHING, 0.0, 1.0), nan=0.0)
    rng = np.random.default_rng((_EPOCH_SEED, number))
    return Recorded(path.stem, values, EPOCH_S * rng.lognormal(0.0, 0.1, len(values)), ranks(params))


def _losses(one: Any) -> list[float]:
    return [float("nan") if loss is None else float(loss) for loss in one["valid"]["loss"]]


def ranks(params: Floats) -> Floats:
    """Return each column as ranks, 0 to 1: whether a hyperparameter was drawn by its logarithm makes no difference."""
    order = np.argsort(np.argsort(params, axis=0, kind="stable"), axis=0, kind="stable")
    return np.asarray(order / max(1, len(params) - 1), dtype=np.float64)


# ---------------------------------------------------------------------------------------------- cifar


def draw_cifar(seed: int, overtaking: bool = True) -> Recorded:
    """Return one drawn set; the same for the same seed.

    A third never learns. Where there is `overtaking`, what ends high rises slowly, and half of it starts late.
    """
    rng = np.random.default_rng((seed, _CIFAR_SEED))
    rows = CIFAR_ROWS
    final = _finals(rng, rows)
    power = rng.uniform(0.6, 1.0, rows)
    noise = rng.uniform(0.003, 0.009, rows)
    plain = rng.normal(np.log(14.0), 0.6, rows)
    slow = rng.normal(np.log(5.0) + 1.6 * (final - 0.3) / 0.48, 0.45)
    learns = (final > 0.3) & overtaking
    tau = np.exp(np.where(learns, slow, plain))
    is_late = learns & (rng.random(rows) < 0.5)
    late = np.where(is_late, rng.exponential(2.5, rows), 0.0)
    epochs = np.arange(1.0, CIFAR_EPOCHS + 1)
    grown = -np.expm1(-((np.maximum(epochs - late[:, None], 0.0) / tau[:, None]) ** power[:, None]))
    shape = grown / grown[:, -1:]
    values = _CHANCE + (final - _CHANCE)[:, None] * shape + noise[:, None] * rng.normal(size=shape.shape)
    epoch_s = EPOCH_S * rng.lognormal(0.0, 0.25, rows)
    name = f"cifar-{seed}" if overtaking else f"cifar-plain-{seed}"
    return Recorded(name, values, epoch_s, np.zeros((rows, 0)))


def _finals(rng: np.random.Generator, rows: int) -> Floats:
    """Return the metric that each row has at the end."""
    kind = rng.random(rows)
    little = rng.uniform(0.11, 0.22, rows)
    some = 0.22 + 0.52 * rng.beta(1.6, 1.1, rows)
    high = rng.uniform(0.745, 0.79, rows)
    return np.asarray(np.select([kind < 0.32, kind < 0.5, kind < 0.935], [np.full(rows, _CHANCE), little, some], high))


@lru_cache(maxsize=4)
def cifar(many: int = 10, overtaking: bool = True, first_seed: int = 1) -> tuple[Recorded, ...]:
    """Return the first `many` sets, by seed, in which as many rows reach the target as may."""
    found: list[Recorded] = []
    seed = first_seed
    while len(found) < many:
        drawn = draw_cifar(seed, overtaking)
        if int((drawn.values.max(axis=1) >= CIFAR_TARGET).sum()) in CIFAR_WINNERS:
            found.append(drawn)
        seed += 1
    return tuple(found)
