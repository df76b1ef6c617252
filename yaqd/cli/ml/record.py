"""Curves for the simulator: what a job's loss did, iteration by iteration, in one file with others."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from yaqd.cli.exits import CommandError
from yaqd.cli.ml.here import CurveKeeper, train_class, train_script
from yaqd.mapreduce import parse_params
from yaqd.mapreduce.loading import split_script
from yaqd.ml import examples
from yaqd.ml.examples.recipes import CLASSES, Recipe
from yaqd.ml.loading import is_iterative, load_iterative

#: losses are written with so many digits: more would be another machine's rounding
_DIGITS: Final = 9


@dataclass(frozen=True, slots=True)
class RecordedCurve:
    """One job's losses, from iteration 0 on."""

    algorithm: str
    curve_class: str
    config: str
    losses: tuple[float, ...]

    def to_json(self) -> dict[str, Any]:
        """Return it as a curve file has it."""
        return {
            "algorithm": self.algorithm,
            "class": self.curve_class,
            "config": self.config,
            "losses": [float(f"{loss:.{_DIGITS}g}") for loss in self.losses],
        }


@dataclass(frozen=True, slots=True)
class Chosen:
    """A job to record: a script, and what it is given."""

    script: str
    #: the algorithm's name in the file; None: the script's
    name: str | None
    curve_class: str
    #: of a class
    options: Mapping[str, str]
    seed: int
    #: of a program
    arguments: Sequence[str]


def record_script(chosen: Chosen, iterations: int) -> RecordedCurve:
    """Train here and return the curve. TrainingError: it failed; CommandError: it reported no loss."""
    path, _ = split_script(chosen.script)
    channel = CurveKeeper(iterations)
    if is_iterative(chosen.script):
        job = load_iterative(chosen.script)
        train_class(job(parse_params(job, chosen.options), seed=chosen.seed, iterations=iterations), channel)
    elif chosen.options or chosen.seed:
        raise CommandError(f"{path} is a program, which -D and --seed do not reach: hand it ARGUMENTS after --")
    else:
        train_script(Path(path), chosen.arguments, channel)
    seed = [f"seed={chosen.seed}"] if chosen.seed else []
    config = [*(f"{name}={value}" for name, value in chosen.options.items()), *seed, *chosen.arguments]
    losses = padded(channel.losses, iterations)
    return RecordedCurve(chosen.name or Path(path).stem, chosen.curve_class, " ".join(config), losses)


def record_recipe(recipe: Recipe, iterations: int) -> RecordedCurve:
    """Return the curve of one of the nine."""
    script = Path(examples.__path__[0]) / f"{recipe.algorithm}.py"
    curve_class = CLASSES[recipe.algorithm]
    if is_iterative(script):
        chosen = Chosen(str(script), None, curve_class, recipe.options, recipe.seed, ())
    else:
        words = {**recipe.options, "seed": str(recipe.seed), "trees": str(iterations)}
        chosen = Chosen(str(script), None, curve_class, {}, 0, [f"--{name}={value}" for name, value in words.items()])
    return replace(record_script(chosen, iterations), config=f"{recipe.config} seed={recipe.seed}")


def padded(losses: Sequence[float], iterations: int) -> tuple[float, ...]:
    """Return the losses of so many iterations; one that ended early keeps the last. CommandError: there is none."""
    if not losses:
        raise CommandError("the job reported no loss: call yaqd.ml.report(iteration=..., loss=...) in its loop")
    return (*losses, *[losses[-1]] * (iterations - len(losses)))[:iterations]


def write_curves(path: Path, curves: Sequence[RecordedCurve], *, append: bool) -> int:
    """Write a curve file, whole or not at all; return how many curves it has. `append`: those that are there stay."""
    there: list[dict[str, Any]] = read_curves(path) if append and path.exists() else []
    found = [*there, *(curve.to_json() for curve in curves)]
    lines = ",\n".join(json.dumps(curve) for curve in found)
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_text(f'{{"curves": [\n{lines}\n]}}\n')
    temporary.replace(path)
    return len(found)


def read_curves(path: Path) -> list[dict[str, Any]]:
    """Return the curves of a curve file. CommandError: it is none."""
    try:
        found = json.loads(path.read_text())["curves"]
        if all(isinstance(curve["algorithm"], str) and isinstance(curve["losses"], list) for curve in found):
            return list(found)
    except (ValueError, TypeError, LookupError):
        pass
    raise CommandError(f"{path} is no curve file: yaq ml record makes one")
