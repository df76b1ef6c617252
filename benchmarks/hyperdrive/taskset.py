"""Questions about real learning curves: the taskset of "Deep Power Laws" (Kadra et al., NeurIPS 2023).

Three files of 1,000 configurations, 51 losses each, of text classification with recurrent networks. They are not
shipped (`yaqd.sim.workloads.exploration` says where they are looked for). Only rows that learn are
asked about (largest y above 0.08), after 5, 10 and 20 epochs, where y has left chance (above 0.06): does y of the last
epoch reach 0.1, 0.15, ... 0.4?
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from yaqd.policies.curves.samples import Floats, Ints
from yaqd.sim.workloads.exploration import find_taskset, taskset

PREFIXES: Final = (5, 10, 20)
TARGETS: Final = tuple(float(target) for target in np.arange(0.1, 0.4001, 0.05).round(2))
_LEARNS: Final = 0.08
_LEFT_CHANCE: Final = 0.06


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
    """Return the cases of each row whose number leaves the rest `part` divided by `parts`. Raises WorkloadError."""
    values, counts, files = [], [], []
    for number, recorded in enumerate(taskset(find_taskset())):
        found = recorded.values[part::parts]
        for prefix in PREFIXES:
            asked = found[(found.max(axis=1) > _LEARNS) & (found[:, prefix - 1] > _LEFT_CHANCE)]
            values.append(asked)
            counts.append(np.full(len(asked), prefix))
            files.append(np.full(len(asked), number))
    return Cases(np.concatenate(values), np.concatenate(counts), np.concatenate(files))
