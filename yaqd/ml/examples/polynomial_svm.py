"""A support vector machine with a polynomial kernel, by gradient descent.

The kernel becomes features (Nystroem). The rest is as in the linear one.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.kernel_approximation import Nystroem

from yaqd.ml import IterativeJob, Param, Partition
from yaqd.ml.examples.data import part, two_classes
from yaqd.ml.examples.svm import descend, hinge


@lru_cache(maxsize=2)
def kernel_features(
    dataset: str, rows: int, features: int, degree: int, landmarks: int, seed: int
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return rows as features of the kernel at some of them, (rows, landmarks), and their classes, -1 or 1."""
    found, classes = two_classes(dataset, rows, features, seed)
    kernel = Nystroem(
        kernel="poly",
        degree=degree,
        gamma=1 / found.shape[1],
        coef0=1,
        n_components=min(landmarks, len(found)),
        random_state=seed,
    )
    made = np.asarray(kernel.fit_transform(found))
    return made / np.sqrt((made**2).sum(axis=1).mean() / 10), classes


class PolynomialSvm(IterativeJob):
    """State: a weight per landmark, and steps done. Loss: mean hinge loss and the L2 term."""

    dataset = Param(str, default="made", help="made, breast_cancer, digits or wine")
    rows = Param(int, default=5_000, help="rows of made")
    features = Param(int, default=20, help="features of made")
    degree = Param(int, default=2, help="degree of the polynomial")
    landmarks = Param(int, default=100, help="rows that the kernel is taken at")
    rate = Param(float, default=0.3, help="first step size")
    l2 = Param(float, default=1e-3, help="strength of the L2 term")

    def _rows(self) -> tuple[Any, Any]:
        return kernel_features(self.dataset, self.rows, self.features, self.degree, self.landmarks, self.seed)

    def load(self, partition: Partition) -> Any:
        return part(partition, *self._rows())

    def initial(self) -> Any:
        return {"weights": np.zeros(self._rows()[0].shape[1]), "steps": 0}

    def step(self, state: Any, partition: Any) -> Any:
        return hinge(state["weights"], *partition)

    def combine(self, state: Any, partials: Sequence[Any]) -> tuple[Any, float]:
        return descend(state, partials, self.rate, self.l2)
