"""Linear regression (ridge) by L-BFGS."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from yaqd.ml import IterativeJob, Param, Partition
from yaqd.ml.examples.data import measured, part
from yaqd.ml.examples.lbfgs import minimized
from yaqd.ml.iterative import Evaluate


class LinearRegression(IterativeJob):
    """State: a weight per feature. Loss: half the mean squared error, and the L2 term."""

    dataset = Param(str, default="made", help="made, friedman or diabetes")
    rows = Param(int, default=20_000, help="rows of made and friedman")
    features = Param(int, default=30, help="features of made and friedman")
    l2 = Param(float, default=1e-6, help="strength of the L2 term")

    def _rows(self) -> tuple[Any, Any]:
        return measured(self.dataset, self.rows, self.features, self.seed)

    def load(self, partition: Partition) -> Any:
        return part(partition, *self._rows())

    def step(self, state: Any, partition: Any) -> Any:
        rows, target = partition
        missed = rows @ state - target
        return {"gradient": missed @ rows, "loss": missed @ missed / 2, "rows": len(rows)}

    def run(self, evaluate: Evaluate) -> Any:
        return minimized(evaluate, self._combined, np.zeros(self._rows()[0].shape[1]), self.limit)

    def _combined(self, state: Any, partials: Sequence[Any]) -> tuple[float, Any]:
        rows = sum(partial["rows"] for partial in partials)
        loss = sum(partial["loss"] for partial in partials) / rows + self.l2 / 2 * (state @ state)
        return loss, sum(partial["gradient"] for partial in partials) / rows + self.l2 * state
