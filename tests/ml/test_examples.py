"""The nine examples: they learn, to the same bits with any number of workers, and their shipped curves are theirs."""

import json
import math
import multiprocessing
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import count
from pathlib import Path

import pytest

from tests.ml.ml_channel import Watched
from tests.ml.ml_workers import step
from yaqd import sim
from yaqd.cli.ml.here import CurveKeeper, train_class, train_script
from yaqd.cli.ml.record import record_recipe
from yaqd.mapreduce import parse_params
from yaqd.ml import examples, set_channel
from yaqd.ml.driving import drive
from yaqd.ml.examples.held_out import HELD_OUT
from yaqd.ml.examples.recipes import CLASSES, RECIPES, Recipe
from yaqd.ml.loading import is_iterative, load_iterative

FOLDER = Path(examples.__path__[0])
CURVES, HELD_OUT_CURVES = (
    json.loads((Path(sim.__path__[0]) / f"curves/{name}.json").read_text())["curves"] for name in ("nine", "held_out")
)
#: by name: recipes, and the curves that were recorded of them
SHIPPED = {"nine": (RECIPES, CURVES), "held-out": (HELD_OUT, HELD_OUT_CURVES)}
SMALL = {
    "kmeans": {"rows": "600", "clusters": "6"},
    "logistic": {"rows": "600"},
    "svm": {"dataset": "breast_cancer"},
    "polynomial_svm": {"rows": "300", "landmarks": "40"},
    "mlp": {"dataset": "wine", "hidden": "6"},
    "linear": {"rows": "600"},
    "lda": {"documents": "60", "vocabulary": "80", "topics": "4"},
}
_ITERATIONS = 8


@pytest.fixture(scope="module")
def workers() -> Iterator[list[ProcessPoolExecutor]]:
    """Two processes, each of which is one worker."""
    context = multiprocessing.get_context("spawn")
    pools = [ProcessPoolExecutor(1, mp_context=context) for _ in range(2)]
    yield pools
    for pool in pools:
        pool.shutdown()


def test_there_are_nine() -> None:
    assert len(CLASSES) == 9
    assert {name for name in CLASSES if is_iterative(FOLDER / f"{name}.py")} == set(SMALL)


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_the_model_is_the_same_to_the_bit_with_any_number_of_workers(
    name: str, workers: list[ProcessPoolExecutor]
) -> None:
    script = str(FOLDER / f"{name}.py")
    job_class = load_iterative(script)
    job = job_class(parse_params(job_class, SMALL[name]), iterations=_ITERATIONS)
    channel = CurveKeeper()
    alone = train_class(job, channel)
    # an optimizer's first loss is that of the start, and of no iteration
    assert len(channel.losses) == _ITERATIONS + job.overrides_run()
    assert channel.losses[-1] < channel.losses[0]
    for number in (1, 2):
        iterations = count(1)

        def evaluate(frame: bytes, number: int = number, iterations: Iterator[int] = iterations) -> list[bytes]:
            iteration = next(iterations)
            futures = [
                workers[index % number].submit(step, script, SMALL[name], index, frame, iteration)
                for index in range(job.partitions)
            ]
            return [future.result() for future in futures]

        assert drive(job, evaluate) == alone, f"{number} workers"


@pytest.mark.parametrize("name", ("boosted_classes", "boosted_regression"))
def test_boosted_trees_go_on_from_a_checkpoint(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import runpy

    words = ["--rows", "200", "--trees", "12"]
    whole = CurveKeeper()
    train_script(FOLDER / f"{name}.py", words, whole)
    assert len(whole.losses) == 12 and whole.losses[-1] < whole.losses[0]

    monkeypatch.setattr("sys.argv", [name, *words])
    first = Watched(4)
    second = Watched(-1)
    try:
        set_channel(first)
        runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
        second.saved = first.saved
        set_channel(second)
        runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
    finally:
        set_channel(None)
    assert list(first.losses) == [1, 2, 3, 4] and list(second.losses)[-1] == 12
    assert {**first.losses, **second.losses} == dict(enumerate(whole.losses, 1))


@pytest.mark.parametrize("name", SHIPPED)
def test_the_shipped_curves_are_whole(name: str) -> None:
    recipes, curves = SHIPPED[name]
    assert Counter(curve["algorithm"] for curve in curves) == Counter(recipe.algorithm for recipe in recipes)
    assert min(Counter(curve["algorithm"] for curve in curves).values()) >= 5
    assert len({(curve["algorithm"], curve["config"]) for curve in curves}) == len(curves)
    for curve in curves:
        losses = curve["losses"]
        assert len(losses) == 160 and all(map(math.isfinite, losses)), curve["config"]
        assert losses[0] > losses[100], curve["config"]
        assert curve["class"] == CLASSES[curve["algorithm"]]


def test_what_is_held_out_has_other_options_and_other_seeds() -> None:
    assert not {(each.algorithm, each.config) for each in RECIPES} & {
        (each.algorithm, each.config) for each in HELD_OUT
    }
    assert not {each.seed for each in RECIPES} & {each.seed for each in HELD_OUT}


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", CLASSES)
@pytest.mark.parametrize("name", SHIPPED)
def test_the_shipped_curves_are_what_the_recorder_records(name: str, algorithm: str) -> None:
    recipes, curves = SHIPPED[name]
    recipe: Recipe = next(each for each in recipes if each.algorithm == algorithm)
    recorded = record_recipe(recipe, 12).to_json()
    [shipped] = [each for each in curves if each["config"] == recorded["config"] and each["algorithm"] == algorithm]
    assert recorded["losses"] == pytest.approx(shipped["losses"][:12], rel=1e-4)
