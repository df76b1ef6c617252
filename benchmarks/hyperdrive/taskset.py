"""Questions about real learning curves: the taskset of "Deep Power Laws" (Kadra et al., NeurIPS 2023).

Three files of 1,000 configurations, 51 losses each, of text classification with recurrent networks. They are not
shipped. They are looked for in `shared/data/taskset` in each folder above this one, or where `YAQD_TASKSET` says.

The metric is y = clip(1 - validation loss / 0.72, 0, 1), and 0 for what is no number. Only rows that learn are asked
about (largest y above 0.08), after 5, 10 and 20 epochs, where y has left chance (above 0.06): does y of the last epoch
reach 0.1, 0.15, ... 0.4?
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from yaqd.policies.curves.reach import Level
from yaqd.policies.curves.samples import Floats, Ints

#: what is believed of a row before it has begun; chosen on the rows with even numbers
LEVEL: Final = Level(start=0.03, start_sd=0.05, rise=0.17, rise_sd=0.15)
PREFIXES: Final = (5, 10, 20)
TARGETS: Final = tuple(float(target) for target in np.arange(0.1, 0.4001, 0.05).round(2))
_CHANCE_LOSS: Final = 0.72
_LEARNS: Final = 0.08
_LEFT_CHANCE: Final = 0.06
_FOLDER: Final = "shared/data/taskset"
_VARIABLE: Final = "YAQD_TASKSET"


class NoTaskset(Exception):
    """The curves are not on this machine; says where they were looked for."""


def taskset_files() -> list[Path]:
    """Return the files in the order of their names. Raises NoTaskset."""
    named = os.environ.get(_VARIABLE)
    folders = [Path(named)] if named else [above / _FOLDER for above in Path(__file__).resolve().parents]
    for folder in folders:
        if found := sorted(folder.glob("*.json")):
            return found
    where = str(folders[0]) if named else f"{_FOLDER}, in no folder above {Path(__file__).resolve().parent}"
    raise NoTaskset(f"no curves in {where}; get data/taskset of machinelearningnuremberg/DPL, name it by {_VARIABLE}")


def metrics(path: Path) -> Floats:
    """Return y of one file, (configurations, epochs)."""
    losses = [one["valid"]["loss"] for one in json.loads(path.read_text())]
    found = np.array([[np.nan if loss is None else loss for loss in row] for row in losses], dtype=np.float64)
    return np.asarray(np.clip(np.nan_to_num(1.0 - found / _CHANCE_LOSS, nan=0.0, posinf=0.0, neginf=0.0), 0.0, 1.0))


@dataclass(frozen=True, slots=True, eq=False)
class Cases:
    """Curves of which a part is known: `values` is (cases, epochs), whole; the others are by case."""

    values: Floats
    counts: Ints
    file: Ints

    def __len__(self) -> int:
        return len(self.counts)

    def some(self, rows: Ints) -> "Cases":
        """Return some of the cases."""
        return Cases(self.values[rows], self.counts[rows], self.file[rows])

    @property
    def epochs(self) -> int:
        return int(self.values.shape[1])


def cases(part: int, parts: int = 2) -> Cases:
    """Return the cases of each row whose number leaves the rest `part` when divided by `parts`. Raises NoTaskset."""
    values, counts, files = [], [], []
    for number, path in enumerate(taskset_files()):
        found = metrics(path)[part::parts]
        for prefix in PREFIXES:
            asked = found[(found.max(axis=1) > _LEARNS) & (found[:, prefix - 1] > _LEFT_CHANCE)]
            values.append(asked)
            counts.append(np.full(len(asked), prefix))
            files.append(np.full(len(asked), number))
    return Cases(np.concatenate(values), np.concatenate(counts), np.concatenate(files))
