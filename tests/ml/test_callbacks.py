"""Loops of libraries: each reports, ends when it is told to, and goes on from its checkpoint."""

import importlib
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest

from tests.ml.ml_channel import Watched
from yaqd.ml import set_channel
from yaqd.ml.callbacks import (
    TorchLoop,
    fit_partially,
    fit_warmly,
    lightgbm_callback,
    lightgbm_model,
    xgboost_callback,
    xgboost_model,
)
from yaqd.ml.threads import one_thread


@pytest.fixture(autouse=True)
def no_channel() -> Iterator[None]:
    yield
    set_channel(None)


def watch(train: Callable[[], Any], stop_at: int = -1, saved: bytes | None = None) -> Watched:
    channel = Watched(stop_at, saved)
    set_channel(channel)
    with one_thread(), warnings.catch_warnings():  # threads of a busy machine wait for each other
        warnings.simplefilter("ignore")  # scikit-learn's: one iteration is few
        train()
    return channel


def check(train: Callable[[], Any], iterations: int = 8) -> list[float]:
    """The whole loop; the loop cut in two with a checkpoint between: the same losses."""
    whole = watch(train)
    assert list(whole.losses) == list(range(1, iterations + 1))
    first = watch(train, stop_at=3)
    assert list(first.losses) == [1, 2, 3]
    second = watch(train, saved=first.saved)
    assert list(second.losses) == list(range(4, iterations + 1))
    assert {**first.losses, **second.losses} == pytest.approx(whole.losses)
    losses = [loss for loss in whole.losses.values() if loss is not None]
    assert losses[-1] < losses[0]
    return losses


def estimator(name: str, *words: Any, **options: Any) -> Any:
    """Makes one of scikit-learn's, which is imported no sooner: to collect the tests takes none of its seconds."""
    module, _, kind = name.partition(".")
    return getattr(importlib.import_module(f"sklearn.{module}"), kind)(*words, **options)


@cache
def classes() -> Any:
    return importlib.import_module("sklearn.datasets").load_breast_cancer(return_X_y=True)


@cache
def scaled() -> Any:
    rows, targets = classes()
    return (rows - rows.mean(axis=0)) / rows.std(axis=0), targets


@cache
def numbers() -> Any:
    return importlib.import_module("sklearn.datasets").load_diabetes(return_X_y=True)


@cache
def scaled_numbers() -> Any:
    rows, targets = numbers()
    return rows, (targets - targets.mean()) / targets.std()


@pytest.mark.parametrize(
    "make, data",
    (
        (
            lambda: estimator(
                "linear_model.SGDClassifier", loss="log_loss", random_state=0, learning_rate="constant", eta0=1e-4
            ),
            scaled,
        ),
        (lambda: estimator("linear_model.SGDClassifier", random_state=0, learning_rate="constant", eta0=1e-4), scaled),
        (
            lambda: estimator("linear_model.SGDRegressor", random_state=0, learning_rate="constant", eta0=1e-3),
            scaled_numbers,
        ),
        (lambda: estimator("neural_network.MLPClassifier", (8,), random_state=0), scaled),
    ),
    ids=("logistic", "hinge", "regressor", "mlp"),
)
def test_partial_fits(make: Callable[[], Any], data: Callable[[], Any]) -> None:
    check(lambda: fit_partially(make(), *data(), iterations=8))


def test_partial_fits_without_targets_and_with_a_loss_of_ones_own() -> None:
    channel = watch(
        lambda: fit_partially(estimator("cluster.MiniBatchKMeans", 3, random_state=0), scaled()[0], iterations=3)
    )
    assert all(loss is not None and loss > 0 for loss in channel.losses.values())
    channel = watch(
        lambda: fit_partially(
            estimator("naive_bayes.GaussianNB"),
            *scaled(),
            iterations=2,
            loss=lambda model, rows, targets: float(len(model.classes_)),
        )
    )
    assert channel.losses == {1: 2.0, 2: 2.0}


@pytest.mark.parametrize(
    "make, data",
    (
        (lambda: estimator("ensemble.GradientBoostingRegressor", max_depth=2, random_state=0), numbers),
        (
            lambda: estimator(
                "ensemble.HistGradientBoostingClassifier", max_leaf_nodes=4, early_stopping=False, random_state=0
            ),
            classes,
        ),
        (lambda: estimator("linear_model.LogisticRegression", solver="lbfgs", C=10), scaled),
    ),
    ids=("boosting", "histograms", "logistic"),
)
def test_warm_starts(make: Callable[[], Any], data: Callable[[], Any]) -> None:
    check(lambda: fit_warmly(make(), *data(), iterations=8))


def test_a_forest_grows_by_what_is_asked_for() -> None:
    model = estimator("ensemble.RandomForestClassifier", max_depth=2, random_state=0)
    watch(lambda: fit_warmly(model, *classes(), iterations=3, grow=4))
    assert len(model.estimators_) == 12


def test_an_estimator_without_warm_start_is_refused() -> None:
    with pytest.raises(ValueError, match="GaussianNB has no warm_start: use fit_partially"):
        fit_warmly(estimator("naive_bayes.GaussianNB"), *classes(), iterations=2)


def grow_xgboost(rounds: int) -> Any:
    """As the docs say."""
    xgboost = pytest.importorskip("xgboost")
    data = xgboost.DMatrix(*classes())
    model = xgboost.train(
        {"objective": "binary:logistic", "max_depth": 2, "nthread": 1},
        data,
        num_boost_round=rounds,
        evals=[(data, "train")],
        verbose_eval=False,
        xgb_model=xgboost_model(),
        callbacks=[xgboost_callback(rounds=rounds, threads="auto")],
    )
    return model.num_boosted_rounds(), model.predict(data)


def grow_lightgbm(rounds: int) -> Any:
    """As the docs say."""
    lightgbm = pytest.importorskip("lightgbm")
    options = {"objective": "binary", "num_leaves": 4, "num_threads": 1, "verbose": -1, "deterministic": True}
    data = lightgbm.Dataset(*classes(), free_raw_data=False)
    model = lightgbm.train(
        options,
        data,
        num_boost_round=rounds,
        valid_sets=[data],
        init_model=lightgbm_model(),
        callbacks=[lightgbm_callback(rounds=rounds, threads="auto")],
    )
    return model.num_trees(), model.predict(classes()[0])


def grow_xgboost_estimator(rounds: int) -> Any:
    xgboost = pytest.importorskip("xgboost")
    callback = xgboost_callback(rounds=rounds)
    model = xgboost.XGBClassifier(n_estimators=rounds, max_depth=2, n_jobs=1, callbacks=[callback])
    model.fit(*classes(), eval_set=[classes()], verbose=False, xgb_model=xgboost_model())
    return model.get_booster().num_boosted_rounds(), model.predict_proba(classes()[0])


def grow_lightgbm_estimator(rounds: int) -> Any:
    lightgbm = pytest.importorskip("lightgbm")
    model = lightgbm.LGBMClassifier(n_estimators=rounds, num_leaves=4, n_jobs=1, verbose=-1, deterministic=True)
    callbacks = [lightgbm_callback(rounds=rounds)]
    model.fit(*classes(), eval_set=[classes()], init_model=lightgbm_model(), callbacks=callbacks)
    return model.booster_.num_trees(), model.predict_proba(classes()[0])


BOOSTED = (grow_xgboost, grow_lightgbm, grow_xgboost_estimator, grow_lightgbm_estimator)


@pytest.mark.parametrize("grow", BOOSTED)
def test_boosted_trees(grow: Callable[[int], Any]) -> None:
    check(lambda: grow(8))


@pytest.mark.slow
@pytest.mark.parametrize("grow", BOOSTED)
@pytest.mark.parametrize("done", (26, 39, 40))
def test_trees_that_are_grown_on_are_as_many_as_are_asked_for(grow: Callable[[int], Any], done: int) -> None:
    """A job that ended before it was whole, or just after, goes on to the undisturbed model."""
    made: list[Any] = []
    watch(lambda: made.append(grow(40)))
    first = watch(lambda: grow(40), stop_at=done)
    assert list(first.losses) == list(range(1, done + 1))
    second = watch(lambda: made.append(grow(40)), saved=first.saved)
    assert list(second.losses) == list(range(done + 1, 41))
    (whole, expected), (count, predicted) = made
    assert count == whole == 40
    assert predicted == pytest.approx(expected, rel=1e-5)


def test_a_program_that_counts_what_is_left_itself_is_right_too() -> None:
    lightgbm = pytest.importorskip("lightgbm")
    first = watch(lambda: grow_lightgbm(40), stop_at=26)

    def grow_on() -> None:
        data = lightgbm.Dataset(*classes(), free_raw_data=False)
        callbacks = [lightgbm_callback(rounds=40)]
        lightgbm.train({"verbose": -1}, data, 14, valid_sets=[data], init_model=lightgbm_model(), callbacks=callbacks)

    assert list(watch(grow_on, saved=first.saved).losses) == list(range(27, 41))


def test_torch() -> None:
    torch = pytest.importorskip("torch")
    rows = torch.tensor(scaled()[0], dtype=torch.float32)
    targets = torch.tensor(scaled()[1], dtype=torch.float32)

    def train() -> None:
        torch.manual_seed(0)
        model = torch.nn.Linear(rows.shape[1], 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        loop = TorchLoop(model, optimizer, threads="auto")
        for epoch in loop.epochs(8):
            loss = torch.nn.functional.binary_cross_entropy_with_logits(model(rows)[:, 0], targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loop.report(epoch, loss, rate=0.1)

    check(train)


def test_nothing_is_imported_before_it_is_used() -> None:
    libraries = "{'sklearn', 'torch', 'xgboost', 'lightgbm', 'numpy'}"
    program = f"import sys, yaqd.ml.callbacks; print({libraries} & set(sys.modules))"
    done = subprocess.run((sys.executable, "-c", program), capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
