"""Configurations of the nine whose curves nothing was chosen on: `yaq ml record --held-out`.

They were written down before any of them ran. Each differs from all of `recipes` in its options and in the seed that
its data is drawn with. No setting of a policy or of a predictor may be chosen on what they give.
"""

from typing import Final

from yaqd.ml.examples.recipes import CLASSES, Recipe

#: of the first configuration of each algorithm; those of `recipes` begin at 0
_FIRST_SEED: Final = 100

_CONFIGS: Final = {
    "kmeans": (
        "dataset=blobs rows=4000 clusters=15",
        "dataset=blobs rows=6000 clusters=30",
        "dataset=blobs rows=5000 clusters=75",
        "dataset=digits clusters=20",
        "dataset=digits clusters=100",
        "dataset=iris clusters=5",
    ),
    "logistic": (
        "dataset=made rows=4000 rate=0.5",
        "dataset=made rows=6000 rate=0.05",
        "dataset=made rows=5000 features=80 rate=1 l2=0.03",
        "dataset=breast_cancer rate=0.1",
        "dataset=breast_cancer rate=1",
        "dataset=digits rate=0.5",
        "dataset=wine rate=0.3",
    ),
    "svm": (
        "dataset=made rows=4000 rate=0.1",
        "dataset=made rows=6000 rate=1",
        "dataset=breast_cancer rate=0.1",
        "dataset=digits rate=0.2",
        "dataset=digits rate=2",
        "dataset=wine rate=0.2",
    ),
    "polynomial_svm": (
        "dataset=made rows=3000 rate=1",
        "dataset=made rows=3000 rate=0.1",
        "dataset=breast_cancer rate=0.3",
        "dataset=digits rate=0.5",
        "dataset=digits rate=2 degree=4",
        "dataset=wine rate=1",
    ),
    "boosted_classes": (
        "dataset=made rate=0.2",
        "dataset=made rate=0.1 depth=4",
        "dataset=made rows=1000 rate=0.05 depth=5",
        "dataset=breast_cancer rate=0.05",
        "dataset=digits rate=0.2 depth=1",
        "dataset=wine rate=0.1 depth=2",
    ),
    "boosted_regression": (
        "dataset=friedman rate=0.15 depth=2",
        "dataset=friedman rate=0.3",
        "dataset=friedman rows=1000 rate=0.05",
        "dataset=made rate=0.05 depth=5",
        "dataset=made rate=0.2 depth=1",
        "dataset=diabetes rate=0.05 depth=2",
    ),
    "mlp": (
        "dataset=digits hidden=16",
        "dataset=digits hidden=64",
        "dataset=made rows=1500 hidden=16",
        "dataset=made rows=3000 hidden=48",
        "dataset=made rows=4000 features=60 hidden=24",
        "dataset=breast_cancer hidden=16 l2=0.001",
    ),
    "linear": (
        "dataset=made rows=4000 features=20",
        "dataset=made rows=4000 features=40",
        "dataset=made rows=3000 features=80",
        "dataset=made rows=6000 features=150",
        "dataset=friedman rows=3000 features=30",
        "dataset=diabetes l2=0.01",
    ),
    "lda": (
        "documents=250 vocabulary=400",
        "documents=300 vocabulary=800 topics=15 hidden=15",
        "documents=200 vocabulary=300 topics=8 hidden=30",
        "documents=250 vocabulary=200 topics=5 sharing=0.3",
        "documents=200 vocabulary=250 sharing=0.15 evenness=500",
        "documents=250 vocabulary=200 hidden=3 sharing=0.1",
    ),
}

HELD_OUT: Final = tuple(
    Recipe(algorithm, config, seed)
    for algorithm in CLASSES
    for seed, config in enumerate(_CONFIGS[algorithm], _FIRST_SEED)
)
