"""Logistic regression of two classes by gradient descent over all rows."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import expit, log_expit

from yaqd.ml import IterativeJob, Param, Partition
from yaqd.ml.examples.data import part, two_classes


class Logistic(IterativeJob):
    """State: a weight per feature. Loss: mean log loss and the L2 term."""

    dataset = Param(str, default="made", help="made, breast_cancer, digits or wine")
    rows = Param(int, default=20_000, help="rows of made")
    features = Param(int, default=20, help="features of made")
    rate = Param(float, default=1.0, help="step size")
    l2 = Param(float, default=1e-3, help="strength of the L2 term")

    def _rows(self) -> tuple[Any, Any]:
        return two_classes(self.dataset, self.rows, self.features, self.seed)

    def load(self, partition: Partition) -> Any:
        return part(partition, *self._rows())

    def initial(self) -> Any:
        return np.zeros(self._rows()[0].shape[1])

    def step(self, state: Any, partition: Any) -> Any:
        rows, classes = partition
        margins = classes * (rows @ state)
        return {
            "gradient": -(classes * expit(-margins)) @ rows,
            "loss": -log_expit(margins).sum(),
            "rows": len(rows),
        }

    def combine(self, state: Any, partials: Sequence[Any]) -> tuple[Any, float]:
        rows = sum(partial["rows"] for partial in partials)
        gradient = sum(partial["gradient"] for partial in partials) / rows + self.l2 * state
        loss = sum(partial["loss"] for partial in partials) / rows + self.l2 / 2 * (state @ state)
        return state - self.rate * gradient, loss
