"""Reports from the loops of libraries. A library is imported by the function that is for it, and by nothing else.

    fit_partially(SGDClassifier(), rows, classes, iterations=50)              # scikit-learn, partial_fit
    fit_warmly(GradientBoostingClassifier(warm_start=True), rows, classes, iterations=100)
    xgboost.train(options, data, 40, evals=[(data, "train")],
                  xgb_model=xgboost_model(), callbacks=[xgboost_callback(rounds=40)])
    lightgbm.train(options, data, 40, valid_sets=[data],
                   init_model=lightgbm_model(), callbacks=[lightgbm_callback(rounds=40)])
    loop = TorchLoop(model, optimizer)                                        # PyTorch
    for epoch in loop.epochs(20):
        loop.report(epoch, train_epoch())

Each ends its loop when the cluster says stop, and counts the iterations that are done, from 1. `threads="auto"` sizes
thread pools by the cores that the job has.
"""

import io
import math
import pickle
from collections.abc import Callable, Iterator
from typing import Any, Final, Literal

from yaqd.ml.channel import Said
from yaqd.ml.reporting import last_checkpoint, report

Threads = Literal["auto"] | None
#: of an estimator, its rows and its targets
Loss = Callable[[Any, Any, Any], float]

#: scikit-learn's estimators keep the loss of a fit under one of these names; the first one as a list
_LOSSES: Final = ("train_score_", "loss_", "inertia_", "reconstruction_err_")


def fit_partially(
    model: Any,
    rows: Any,
    targets: Any = None,
    *,
    iterations: int,
    loss: Loss | None = None,
    threads: Threads = None,
    **further: Any,
) -> Any:
    """Call scikit-learn's `partial_fit` over all rows once an iteration; return the model.

    Without `loss` it is what the estimator itself has kept of its fit, else log loss for a classifier and mean squared
    error for a regressor. `further` goes to `partial_fit`; a classifier's `classes` are found. A model that is started
    again goes on from its checkpoint.
    """
    if _is_classifier(model) and "classes" not in further:
        import numpy as np

        further["classes"] = np.unique(targets)
    words = (rows,) if targets is None else (rows, targets)
    return _loop(
        model, lambda fitted, _: fitted.partial_fit(*words, **further), rows, targets, iterations, loss, threads
    )


def fit_warmly(
    model: Any,
    rows: Any,
    targets: Any = None,
    *,
    iterations: int,
    grow: int = 1,
    loss: Loss | None = None,
    threads: Threads = None,
) -> Any:
    """Fit a scikit-learn estimator with `warm_start` a little further in each iteration; return the model.

    An ensemble grows by `grow` estimators an iteration. Another model runs `max_iter=grow` iterations of its own, and
    may warn that they are few. `loss`, checkpoint and end are as in `fit_partially`. ValueError: the estimator has no
    `warm_start`.
    """
    options = model.get_params()
    if "warm_start" not in options:
        raise ValueError(f"{type(model).__name__} has no warm_start: use fit_partially, or report() in a loop")
    # histogram boosting counts its trees as iterations
    size = "n_estimators" if "n_estimators" in options else "max_iter"
    is_ensemble = size == "n_estimators" or "max_leaf_nodes" in options
    model.set_params(warm_start=True)
    words = (rows,) if targets is None else (rows, targets)

    def fit(fitted: Any, iteration: int) -> Any:
        fitted.set_params(**{size: grow * (iteration + 1) if is_ensemble else grow})
        return fitted.fit(*words)

    return _loop(model, fit, rows, targets, iterations, loss, threads)


def _loop(
    model: Any,
    fit: Callable[[Any, int], Any],
    rows: Any,
    targets: Any,
    iterations: int,
    loss: Loss | None,
    threads: Threads,
) -> Any:
    first = 0
    saved = last_checkpoint()
    if saved is not None:
        first, model = pickle.loads(saved)  # what this job itself has written
    for done in range(first, iterations):
        fit(model, done)
        found = loss(model, rows, targets) if loss is not None else _loss_of(model, rows, targets)
        said = report(done + 1, found, _Pickled(done + 1, model), threads=threads)
        if said.stop:
            break
    return model


class _Pickled:
    def __init__(self, iteration: int, model: Any) -> None:
        self._content = iteration, model

    def __call__(self) -> bytes:
        return pickle.dumps(self._content)


def _is_classifier(model: Any) -> bool:
    from sklearn.base import is_classifier

    return bool(is_classifier(model))


def _loss_of(model: Any, rows: Any, targets: Any) -> float:
    """What the estimator has kept of its fit, or what its predictions miss."""
    for name in _LOSSES:
        kept = getattr(model, name, None)
        if name == _LOSSES[0]:
            # the one of histogram boosting is a score, which rises
            kept = kept[-1] if kept is not None and "n_estimators" in model.get_params() else None
        if kept is not None:
            return float(kept)
    if targets is None:
        if not hasattr(model, "score"):
            raise ValueError(f"{type(model).__name__} keeps no loss: hand in loss=")
        return -float(model.score(rows))
    from sklearn import metrics

    if not _is_classifier(model):
        return float(metrics.mean_squared_error(targets, model.predict(rows)))
    if hasattr(model, "predict_proba"):
        return float(metrics.log_loss(targets, model.predict_proba(rows), labels=model.classes_))
    return float(metrics.hinge_loss(targets, model.decision_function(rows), labels=model.classes_))


def xgboost_callback(*, rounds: int, loss: str | None = None, threads: Threads = None) -> Any:
    """Return a callback for `xgboost.train` and its estimators, which need data to evaluate (`evals`).

    `rounds`: how many the model is to have in all. Training ends there: XGBoost itself counts `num_boost_round` on top
    of the model that it goes on from. `loss`: a metric by name, which must fall [default: the last metric of the first
    data]. A job that is started again goes on with `xgb_model=xgboost_model()`.
    """
    from xgboost.callback import TrainingCallback

    class XGBoostReporting(TrainingCallback):  # type: ignore[misc,unused-ignore]
        """Reports each round."""

        def __init__(self) -> None:
            super().__init__()
            self._threads = 0

        def before_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
            """Return whether to end: nothing is left to do."""
            return bool(model.num_boosted_rounds() >= rounds)

        def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
            """Report; return whether to end."""
            measured: dict[str, Any] = next(iter(evals_log.values()), {})
            name = loss or (list(measured)[-1] if measured else None)
            value = measured[name][-1] if name in measured else None
            said = report(model.num_boosted_rounds(), value, lambda: bytes(model.save_raw()), threads=threads)
            if threads is not None and self._threads != _whole(said):
                self._threads = _whole(said)
                model.set_param({"nthread": self._threads})
            return said.stop

    return XGBoostReporting()


def xgboost_model() -> bytearray | None:
    """Return what `xgboost.train(xgb_model=...)` goes on from; None at a first attempt."""
    saved = last_checkpoint()
    return None if saved is None else bytearray(saved)


def lightgbm_callback(*, rounds: int, loss: str | None = None, threads: Threads = None) -> Callable[[Any], None]:
    """Return a callback for `lightgbm.train` and its estimators, which need data to evaluate (`valid_sets`).

    `rounds`: how many the model is to have in all. Training ends there: LightGBM itself counts `num_boost_round` on top
    of the model that it goes on from. `loss`: a metric by name [default: the first that must fall]. A job that is
    started again goes on with `init_model=lightgbm_model()`.
    """
    set_threads = 0

    def report_round(env: Any) -> None:
        nonlocal set_threads
        from lightgbm.callback import EarlyStopException

        if env.iteration >= rounds:
            # nothing was left to do, and LightGBM does one round at least
            env.model.rollback_one_iter()
            raise EarlyStopException(rounds - 1, env.evaluation_result_list or [])
        falling = [(entry[1], entry[2]) for entry in env.evaluation_result_list or () if not entry[3]]
        value = next((number for name, number in falling if loss in (None, name)), None)
        done = env.model.current_iteration()
        said = report(done, value, lambda: env.model.model_to_string().encode(), threads=threads)
        if threads is not None and set_threads != _whole(said):
            set_threads = _whole(said)
            env.model.reset_parameter({"num_threads": set_threads})
        if said.stop or rounds <= env.iteration + 1 < env.end_iteration:
            raise EarlyStopException(env.iteration, env.evaluation_result_list or [])

    return report_round


def lightgbm_model() -> Any:
    """Return what `lightgbm.train(init_model=...)` goes on from; None at a first attempt."""
    saved = last_checkpoint()
    if saved is None:
        return None
    from lightgbm import Booster

    return Booster(model_str=saved.decode())


class TorchLoop:
    """Reports of a PyTorch loop, with checkpoints of model and optimizer."""

    def __init__(self, model: Any, optimizer: Any = None, *, threads: Threads = None) -> None:
        """Takes over an earlier attempt's checkpoint where there is one."""
        self._parts = {"model": model, **({"optimizer": optimizer} if optimizer is not None else {})}
        self._threads = threads
        self._is_over = False
        #: the epoch that `epochs` begins with
        self.first = 0
        saved = last_checkpoint()
        if saved is not None:
            self._restore(saved)

    def epochs(self, count: int) -> Iterator[int]:
        """Yield the epochs that are left, until the cluster says stop."""
        for epoch in range(self.first, count):
            if self._is_over:
                return
            yield epoch

    def report(self, epoch: int, loss: Any, **metrics: float) -> Said:
        """Report an epoch that is done, as `epochs` yields them; a loss may be a tensor of one element."""
        said = report(epoch + 1, float(loss), lambda: self._saved(epoch + 1), threads=self._threads, **metrics)
        self._is_over = said.stop
        return said

    def _saved(self, epoch: int) -> bytes:
        import torch

        buffer = io.BytesIO()
        torch.save({"epoch": epoch, **{name: part.state_dict() for name, part in self._parts.items()}}, buffer)
        return buffer.getvalue()

    def _restore(self, saved: bytes) -> None:
        import torch

        found = torch.load(io.BytesIO(saved), weights_only=True)
        self.first = int(found["epoch"])
        for name, part in self._parts.items():
            part.load_state_dict(found[name])


def _whole(said: Said) -> int:
    return max(1, math.ceil(said.cores))
