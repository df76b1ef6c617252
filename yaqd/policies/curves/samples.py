"""Windows of losses as the predictors take them: evenly spaced, newest last, the newest 0 and the largest 1.

Whatever a job has reported, this file makes numbers of it that fits can live with. `losses.py` has refused what is no
number before.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

#: points of a window at most: older losses say nothing that the newest 60 do not
WINDOW_MAX: Final = 60
#: multiplications that OpenBLAS leaves to one thread: 4 times 65,536 (interface/gemm.c, GEMM_MULTITHREAD_THRESHOLD)
_ALONE: Final = 4 << 16


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Evenly spaced losses of many jobs, one a row.

    `values`: (jobs, window), newest in the last column, 0 there, in units of `scale`; 0 where nothing is known.
    `counts`: known values of each row, from the right. `steps`: iterations between two neighbours.
    """

    values: Floats
    counts: Ints
    steps: Floats
    scale: Floats

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def window(self) -> int:
        return int(self.values.shape[1])

    @property
    def known(self) -> Bools:
        """Which values a job has reported, (jobs, window)."""
        return np.arange(self.window) >= self.window - self.counts[:, None]

    def before(self, back: Ints) -> "Sample":
        """Return the windows as they were `back` values ago, by row; the newest is 0 again, the scale stays."""
        columns = np.arange(self.window) - back[:, None]
        shifted = picked(self.values, np.maximum(columns, 0))
        counts = np.maximum(self.counts - back, 0)
        shifted = np.where(np.arange(self.window) >= self.window - counts[:, None], shifted - shifted[:, -1:], 0.0)
        return Sample(shifted, counts, self.steps, self.scale)

    def rows(self, rows: Ints) -> "Sample":
        """Return some of the rows."""
        return Sample(self.values[rows], self.counts[rows], self.steps[rows], self.scale[rows])

    def with_rows(self, other: "Sample") -> "Sample":
        """Return the rows of both, this one's first."""
        return Sample(
            np.concatenate((self.values, other.values)),
            np.concatenate((self.counts, other.counts)),
            np.concatenate((self.steps, other.steps)),
            np.concatenate((self.scale, other.scale)),
        )


def product(values: Floats, table: Floats) -> Floats:
    """Return `values @ table`, computed by one thread, by blocks of rows so small that BLAS wakes no other.

    Threads that BLAS has woken wait busily for more: they would double the processor time of a division, and take a
    core from whoever shares the machine. One thread also gives the same bits on any number of cores.
    """
    block = max(1, _ALONE // table.size)
    found = np.empty((len(values), table.shape[1]))
    for at in range(0, len(values), block):
        np.matmul(values[at : at + block], table, out=found[at : at + block])
    return found


def picked(values: Floats, columns: Ints) -> Floats:
    """Return some columns of each row, (rows, n): `numpy.take_along_axis` at a quarter of its cost for few rows."""
    return np.asarray(values[np.arange(len(values))[:, None], columns])


def sample(iterations: Floats, losses: Floats, counts: Ints) -> Sample:
    """Return the windows of `losses` as a sample.

    All three are by job; the first two are (jobs, window) with the newest in the last column, and only the last
    `counts` columns of a row are read. Iterations grow to the right and losses are finite (`losses.py` sees to both).
    A job that left iterations out is read at even steps, by straight lines between its losses.
    """
    counts = np.clip(np.asarray(counts, dtype=np.int64), 0, losses.shape[1])
    known = np.arange(losses.shape[1]) >= losses.shape[1] - counts[:, None]
    even, steps = _evenly(iterations, np.where(known, losses, 0.0), counts, known)
    values = np.where(known, even - even[:, -1:], 0.0)
    scale = np.max(np.abs(values), axis=1, initial=0.0)
    return Sample(values / np.where(scale > 0.0, scale, 1.0)[:, None], counts, steps, scale)


def _evenly(iterations: Floats, losses: Floats, counts: Ints, known: Bools) -> tuple[Floats, Floats]:
    """Return losses at even steps and the steps, iterations; a row has as many values as before."""
    window = losses.shape[1]
    first = picked(iterations, np.minimum(window - counts, window - 1)[:, None])[:, 0]
    steps = np.where(counts > 1, (iterations[:, -1] - first) / np.maximum(counts - 1, 1), 1.0)
    steps = np.maximum(steps, 1e-9)
    wanted = iterations[:, -1:] - steps[:, None] * np.arange(window - 1, -1, -1)
    off = known & (np.abs(wanted - iterations) > 1e-6 * steps[:, None])
    uneven = np.flatnonzero(off.any(axis=1))
    if uneven.size:
        losses = losses.copy()
        for row in uneven:
            have = known[row]
            losses[row, have] = np.interp(wanted[row, have], iterations[row, have], losses[row, have])
    return losses, steps
