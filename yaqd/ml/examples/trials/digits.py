"""Train a perceptron on scikit-learn's digits: one trial of an exploration.

    yaq ml explore digits.py --space digits.toml --metric accuracy --target 0.96 --kill 0.15 --epochs 30 --slots 2

An epoch is one pass over two thirds of the digits; the accuracy is on the others. `--epoch-seconds S` makes each epoch
take so much processor time, as training on more data would.
"""

import argparse
import pickle
import time
import warnings
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

from yaqd.ml import last_checkpoint, report, trial

EPOCHS: Final = 30
CLASSES: Final = 10


@cache
def rows() -> tuple[Any, Any, Any, Any]:
    """Return the digits to learn from, those to be asked about, and what each of both is."""
    found, digits = load_digits(return_X_y=True)
    return tuple(train_test_split(found / 16.0, digits, test_size=1 / 3, random_state=1))


class DigitsNetwork:
    """A network and the epochs that it has seen."""

    def __init__(self, params: Mapping[str, Any]) -> None:
        self.epoch = 0
        self.model = MLPClassifier(
            hidden_layer_sizes=(params["width"],) * params["layers"],
            activation=params["activation"],
            solver=params["solver"],
            alpha=params["l2"],
            batch_size=params["batch"],
            learning_rate_init=params["rate"],
            momentum=params["momentum"],
            random_state=1,
        )

    def trained(self) -> float:
        """Train for one epoch; return the accuracy."""
        seen, asked, seen_digits, asked_digits = rows()
        self.epoch += 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # rates that are too high overflow: that is a result too
            try:
                self.model.partial_fit(seen, seen_digits, classes=np.arange(CLASSES))
                return float(self.model.score(asked, asked_digits))
            except ValueError as error:
                if "non-finite" not in str(error):
                    raise
                return 1.0 / CLASSES


def burn(until_s: float) -> None:
    """Compute until the process has used so much processor time, s."""
    square = np.ones((100, 100))
    while time.process_time() < until_s:
        square @ square


def main() -> None:
    parser = argparse.ArgumentParser(description="one trial: a perceptron on handwritten digits")
    parser.add_argument("--epoch-seconds", type=float, default=0.0, help="least processor time of an epoch, s")
    epoch_s = parser.parse_args().epoch_seconds
    saved = last_checkpoint()
    network: DigitsNetwork = pickle.loads(saved) if saved is not None else DigitsNetwork(trial.params)
    while network.epoch < EPOCHS:
        began_s = time.process_time()
        accuracy = network.trained()
        burn(began_s + epoch_s)
        if report(network.epoch, accuracy=accuracy, checkpoint=lambda: pickle.dumps(network)).stop:
            break


if __name__ == "__main__":
    main()
