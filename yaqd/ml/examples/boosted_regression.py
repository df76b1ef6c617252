"""Boosted trees for a number: a plain program that grows a tree an iteration and reports. Loss: mean squared error.

yaq ml local boosted_regression.py -- --rows 5000 --depth 3
"""

import argparse
import pickle

from sklearn.ensemble import GradientBoostingRegressor

from yaqd.ml import last_checkpoint, report
from yaqd.ml.examples.data import measured


def main() -> None:
    """Train as the command line says."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--dataset", default="made", help="made, friedman or diabetes [default: made]")
    options.add_argument("--rows", type=int, default=2_000, help="rows of a generated set [default: 2000]")
    options.add_argument("--features", type=int, default=20, help="features of a generated set [default: 20]")
    options.add_argument("--depth", type=int, default=3, help="depth of a tree [default: 3]")
    options.add_argument("--rate", type=float, default=0.1, help="share of each tree [default: 0.1]")
    options.add_argument("--trees", type=int, default=100, help="of the model in all [default: 100]")
    options.add_argument("--seed", type=int, default=0, help="[default: 0]")
    chosen = options.parse_args()

    rows, target = measured(chosen.dataset, chosen.rows, chosen.features, chosen.seed)
    saved = last_checkpoint()
    if saved is not None:
        model = pickle.loads(saved)  # what this program itself has written
    else:
        model = GradientBoostingRegressor(
            n_estimators=1, max_depth=chosen.depth, learning_rate=chosen.rate, random_state=chosen.seed, warm_start=True
        ).fit(rows, target)
    while not report(
        iteration=model.n_estimators_, loss=model.train_score_[-1], checkpoint=lambda: pickle.dumps(model)
    ).stop:
        if model.n_estimators_ >= chosen.trees:
            break
        model.set_params(n_estimators=model.n_estimators_ + 1).fit(rows, target)


if __name__ == "__main__":
    main()
