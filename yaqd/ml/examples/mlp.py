"""A perceptron with one hidden layer (tanh, then softmax) by L-BFGS."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import log_softmax

from yaqd.ml import IterativeJob, Param, Partition
from yaqd.ml.examples.data import many_classes, part
from yaqd.ml.examples.lbfgs import minimized
from yaqd.ml.iterative import Evaluate


class Perceptron(IterativeJob):
    """State: all weights as one vector. Loss: mean log loss and the L2 term."""

    dataset = Param(str, default="digits", help="made, digits, wine or breast_cancer")
    rows = Param(int, default=5_000, help="rows of made")
    features = Param(int, default=20, help="features of made")
    hidden = Param(int, default=32, help="units of the hidden layer")
    l2 = Param(float, default=1e-4, help="strength of the L2 term")

    def _rows(self) -> tuple[Any, Any]:
        return many_classes(self.dataset, self.rows, self.features, self.seed)

    def load(self, partition: Partition) -> Any:
        return part(partition, *self._rows())

    def _layers(self, state: Any, features: int) -> tuple[Any, Any, Any, Any]:
        """Weights and biases of both layers, as views of the vector."""
        classes = (len(state) - self.hidden * (features + 1)) // (self.hidden + 1)
        ends = np.cumsum((features * self.hidden, self.hidden, self.hidden * classes))
        first, first_bias, second, second_bias = np.split(state, ends)
        return first.reshape(features, -1), first_bias, second.reshape(self.hidden, -1), second_bias

    def step(self, state: Any, partition: Any) -> Any:
        rows, classes = partition
        first, first_bias, second, second_bias = self._layers(state, rows.shape[1])
        hidden = np.tanh(rows @ first + first_bias)
        logs = log_softmax(hidden @ second + second_bias, axis=1)
        missed = np.exp(logs)
        missed[np.arange(len(rows)), classes] -= 1
        back = missed @ second.T * (1 - hidden**2)
        parts = (rows.T @ back, back.sum(axis=0), hidden.T @ missed, missed.sum(axis=0))
        return {
            "gradient": np.concatenate([each.ravel() for each in parts]),
            "loss": -logs[np.arange(len(rows)), classes].sum(),
            "rows": len(rows),
        }

    def run(self, evaluate: Evaluate) -> Any:
        rows, classes = self._rows()
        features, kinds = rows.shape[1], int(classes.max()) + 1
        rng = np.random.default_rng(self.seed)
        sizes = ((features, self.hidden), (self.hidden, kinds))
        layers = [(rng.normal(0, 1 / np.sqrt(ins), ins * outs), np.zeros(outs)) for ins, outs in sizes]
        return minimized(
            evaluate, self._combined, np.concatenate([each for pair in layers for each in pair]), self.limit
        )

    def _combined(self, state: Any, partials: Sequence[Any]) -> tuple[float, Any]:
        rows = sum(partial["rows"] for partial in partials)
        loss = sum(partial["loss"] for partial in partials) / rows + self.l2 / 2 * (state @ state)
        return loss, sum(partial["gradient"] for partial in partials) / rows + self.l2 * state
