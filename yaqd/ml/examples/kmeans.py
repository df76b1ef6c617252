"""K-Means by Lloyd's iterations: every point to its nearest center, every center to the mean of its points."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.metrics import pairwise_distances_argmin_min

from yaqd.ml import IterativeJob, Param, Partition
from yaqd.ml.examples.data import part, points


class KMeans(IterativeJob):
    """State: the centers. Loss: mean squared distance of a point to its center."""

    dataset = Param(str, default="blobs", help="blobs, digits or iris")
    rows = Param(int, default=20_000, help="points of blobs")
    features = Param(int, default=10, help="features of blobs")
    clusters = Param(int, default=20, help="centers")

    def _points(self) -> np.ndarray[Any, Any]:
        return points(self.dataset, self.rows, self.features, self.clusters, self.seed)

    def load(self, partition: Partition) -> Any:
        return part(partition, self._points())[0]

    def initial(self) -> Any:
        found = self._points()
        return found[np.random.default_rng(self.seed).choice(len(found), self.clusters, replace=False)]

    def step(self, state: Any, partition: Any) -> Any:
        nearest, distances = pairwise_distances_argmin_min(partition, state, metric="sqeuclidean")
        members = csr_matrix(
            (np.ones(len(nearest)), (nearest, np.arange(len(nearest)))), shape=(len(state), len(nearest))
        )
        return {
            "sums": members @ partition,
            "counts": np.bincount(nearest, minlength=len(state)),
            "distance": distances.sum(),
        }

    def combine(self, state: Any, partials: Sequence[Any]) -> tuple[Any, float]:
        counts = sum(partial["counts"] for partial in partials)
        sums = sum(partial["sums"] for partial in partials)
        moved = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], state)
        return moved, sum(partial["distance"] for partial in partials) / counts.sum()
