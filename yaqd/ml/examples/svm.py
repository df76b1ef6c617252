"""A linear support vector machine by gradient descent over all rows, with steps that get smaller as 1/sqrt(k)."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from yaqd.ml import IterativeJob, Param, Partition
from yaqd.ml.examples.data import part, two_classes


def hinge(weights: Any, rows: Any, classes: Any) -> dict[str, Any]:
    """Return sum and gradient of the hinge loss over some rows."""
    margins = classes * (rows @ weights)
    is_near = margins < 1
    return {
        "gradient": -(classes * is_near) @ rows,
        "loss": np.maximum(0, 1 - margins).sum(),
        "rows": len(rows),
    }


def descend(state: Any, partials: Sequence[Any], rate: float, l2: float) -> tuple[Any, float]:
    """Return the state after a step, and the loss before it."""
    weights, rows = state["weights"], sum(partial["rows"] for partial in partials)
    gradient = sum(partial["gradient"] for partial in partials) / rows + l2 * weights
    loss = sum(partial["loss"] for partial in partials) / rows + l2 / 2 * (weights @ weights)
    moved = weights - rate / np.sqrt(state["steps"] + 1) * gradient
    return {"weights": moved, "steps": state["steps"] + 1}, loss


class Svm(IterativeJob):
    """State: a weight per feature, and steps done. Loss: mean hinge loss and the L2 term."""

    dataset = Param(str, default="made", help="made, breast_cancer, digits or wine")
    rows = Param(int, default=20_000, help="rows of made")
    features = Param(int, default=20, help="features of made")
    rate = Param(float, default=0.3, help="first step size")
    l2 = Param(float, default=1e-3, help="strength of the L2 term")

    def _rows(self) -> tuple[Any, Any]:
        return two_classes(self.dataset, self.rows, self.features, self.seed)

    def load(self, partition: Partition) -> Any:
        return part(partition, *self._rows())

    def initial(self) -> Any:
        return {"weights": np.zeros(self._rows()[0].shape[1]), "steps": 0}

    def step(self, state: Any, partition: Any) -> Any:
        return hinge(state["weights"], *partition)

    def combine(self, state: Any, partials: Sequence[Any]) -> tuple[Any, float]:
        return descend(state, partials, self.rate, self.l2)
