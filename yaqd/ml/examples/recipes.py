"""The configurations of the nine algorithms whose curves are recorded (`yaq ml record`) for the simulator."""

from dataclasses import dataclass, field
from typing import Final

#: first-order methods; EM, Lloyd and L-BFGS
SUBLINEAR: Final = "sublinear"
SUPERLINEAR: Final = "superlinear"

#: script (its name is the algorithm's) with the class that its loss is declared as
CLASSES: Final = {
    "kmeans": SUPERLINEAR,
    "logistic": SUBLINEAR,
    "svm": SUBLINEAR,
    "polynomial_svm": SUBLINEAR,
    "boosted_classes": SUBLINEAR,
    "boosted_regression": SUBLINEAR,
    "mlp": SUPERLINEAR,
    "linear": SUPERLINEAR,
    "lda": SUPERLINEAR,
}


@dataclass(frozen=True, slots=True)
class Recipe:
    """One curve to record."""

    algorithm: str
    #: `name=value` words: options of the job's class, or of the program
    config: str
    seed: int = 0
    options: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        pairs = (word.partition("=") for word in self.config.split())
        object.__setattr__(self, "options", {name: value for name, _, value in pairs})


_CONFIGS: Final = {
    "kmeans": (
        "dataset=blobs rows=5000 clusters=20",
        "dataset=blobs rows=5000 clusters=50",
        "dataset=blobs rows=5000 clusters=10",
        "dataset=digits clusters=10",
        "dataset=digits clusters=50",
        "dataset=iris clusters=10",
    ),
    "logistic": (
        "dataset=made rows=5000 rate=1",
        "dataset=made rows=5000 rate=0.1",
        "dataset=made rows=5000 features=50 rate=0.5 l2=0.01",
        "dataset=breast_cancer rate=0.3",
        "dataset=breast_cancer rate=0.05",
        "dataset=digits rate=0.1",
        "dataset=wine rate=0.1",
    ),
    "svm": (
        "dataset=made rows=5000 rate=0.3",
        "dataset=made rows=5000 rate=2",
        "dataset=breast_cancer rate=0.3",
        "dataset=digits rate=0.05",
        "dataset=digits rate=1",
        "dataset=wine rate=0.05",
    ),
    "polynomial_svm": (
        "dataset=made rows=2000 rate=0.3",
        "dataset=made rows=2000 rate=3",
        "dataset=breast_cancer rate=1",
        "dataset=digits rate=1",
        "dataset=digits rate=3 degree=3",
        "dataset=wine rate=0.3",
    ),
    "boosted_classes": (
        "dataset=made rate=0.1",
        "dataset=made rate=0.05",
        "dataset=made rate=0.3 depth=2",
        "dataset=breast_cancer rate=0.1",
        "dataset=digits rate=0.1 depth=2",
        "dataset=wine rate=0.05",
    ),
    "boosted_regression": (
        "dataset=friedman rate=0.1",
        "dataset=friedman rate=0.05 depth=4",
        "dataset=friedman rate=0.2 depth=1",
        "dataset=made rate=0.1",
        "dataset=made rate=0.3 depth=2",
        "dataset=diabetes rate=0.1",
    ),
    "mlp": (
        "dataset=digits hidden=32",
        "dataset=digits hidden=8",
        "dataset=made rows=2000 hidden=32",
        "dataset=made rows=1000 hidden=64",
        "dataset=made rows=5000 features=40 hidden=16",
        "dataset=breast_cancer hidden=8 l2=0.01",
    ),
    "linear": (
        "dataset=made rows=5000 features=15",
        "dataset=made rows=5000 features=30",
        "dataset=made rows=2000 features=60",
        "dataset=made rows=5000 features=100",
        "dataset=friedman rows=2000 features=20",
        "dataset=diabetes",
    ),
    "lda": (
        "documents=300 vocabulary=300",
        "documents=300 vocabulary=1000 topics=20 hidden=20",
        "documents=200 vocabulary=200 topics=5 hidden=20",
        "documents=200 vocabulary=200 topics=5 sharing=0.2",
        "documents=200 vocabulary=200 sharing=0.2 evenness=1000",
        "documents=200 vocabulary=200 hidden=5 sharing=0.1",
    ),
}

RECIPES: Final = tuple(
    Recipe(algorithm, config, seed) for algorithm in CLASSES for seed, config in enumerate(_CONFIGS[algorithm])
)
