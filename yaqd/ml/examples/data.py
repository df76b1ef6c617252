"""What the examples train on: scikit-learn's own small sets, and sets that are generated from a seed.

A generated set has as many rows as asked for. A process makes a set once, whole, whatever its partitions: so each
partition has the same rows wherever it is loaded.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn import datasets
from sklearn.preprocessing import StandardScaler

from yaqd.mapreduce import JobError
from yaqd.ml import Partition

#: Poisson mean of a document's words
_WORDS = 60
#: Dirichlet parameter of a document's topics
_TOPIC_PRIOR = 0.2


@lru_cache(maxsize=2)
def points(name: str, rows: int, features: int, centers: int, seed: int) -> np.ndarray[Any, Any]:
    """Return points to cluster, (rows, features). `name`: blobs (as many as `centers`, overlapping), digits, iris."""
    if name == "blobs":
        return np.asarray(datasets.make_blobs(rows, features, centers=centers, cluster_std=3.0, random_state=seed)[0])
    return np.asarray(StandardScaler().fit_transform(_own(name, ("digits", "iris"), "blobs").data))


@lru_cache(maxsize=2)
def two_classes(name: str, rows: int, features: int, seed: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return standardized rows and their classes, -1 or 1. `name`: made (half of the features tell, 3 % of the classes
    are wrong), cancer, digits (below 5 or not), wine (the first kind or not)."""
    if name == "made":
        found, kinds = datasets.make_classification(
            rows, features, n_informative=max(2, features // 2), flip_y=0.03, class_sep=0.8, random_state=seed
        )
    else:
        bunch = _own(name, ("breast_cancer", "digits", "wine"), "made")
        found, kinds = bunch.data, bunch.target > {"digits": 4}.get(name, 0)
    return np.asarray(StandardScaler().fit_transform(found)), np.where(kinds, 1.0, -1.0)


@lru_cache(maxsize=2)
def many_classes(name: str, rows: int, features: int, seed: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return standardized rows and their classes from 0. `name`: made (5 classes of 2 clusters), digits (10), wine
    (3)."""
    if name == "made":
        found, kinds = datasets.make_classification(
            rows,
            features,
            n_informative=max(5, features // 2),
            n_classes=5,
            n_clusters_per_class=2,
            flip_y=0.02,
            random_state=seed,
        )
    else:
        bunch = _own(name, ("digits", "wine", "breast_cancer"), "made")
        found, kinds = bunch.data, bunch.target
    return np.asarray(StandardScaler().fit_transform(found)), np.asarray(kinds)


@lru_cache(maxsize=2)
def measured(name: str, rows: int, features: int, seed: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return rows and a standardized target. `name`: made (linear, noise, correlated features), friedman (not linear),
    diabetes. Features have scales from 1 to 30 in `made`, so that a solver needs its steps."""
    if name == "made":
        found, target = datasets.make_regression(
            rows, features, n_informative=features, effective_rank=max(2, features // 3), noise=0.5, random_state=seed
        )
        found = StandardScaler().fit_transform(found) * np.geomspace(1.0, 30.0, features)
    elif name == "friedman":
        found, target = datasets.make_friedman1(rows, max(5, features), noise=1.0, random_state=seed)
        found = StandardScaler().fit_transform(found)
    else:
        bunch = _own(name, ("diabetes",), "made, friedman")
        found, target = StandardScaler().fit_transform(bunch.data), bunch.target
    return np.asarray(found), np.asarray((target - target.mean()) / target.std())


@lru_cache(maxsize=2)
def corpus(documents: int, vocabulary: int, topics: int, sharing: float, seed: int) -> csr_matrix:
    """Return a text as counts of words, (documents, vocabulary): drawn as latent Dirichlet allocation thinks it.
    `sharing`: Dirichlet parameter of a topic's words."""
    rng = np.random.default_rng(seed)
    words = rng.dirichlet(np.full(vocabulary, sharing), topics)
    mixed = rng.dirichlet(np.full(topics, _TOPIC_PRIOR), documents)
    lengths = 1 + rng.poisson(_WORDS, documents)
    return csr_matrix(np.stack([rng.multinomial(n, mix @ words) for n, mix in zip(lengths, mixed, strict=True)]))


def part(partition: Partition, *arrays: Any) -> list[Any]:
    """Return every `count`th row of each array, from row `index`, as arrays of their own."""
    return [array[partition.index :: partition.count].copy() for array in arrays]


def _own(name: str, known: tuple[str, ...], made: str) -> Any:
    """A set of scikit-learn's own; JobError: another one."""
    if name not in known:
        raise JobError(f"dataset={name}: choose one of {made}, {', '.join(known)}")
    return getattr(datasets, f"load_{name}")()
