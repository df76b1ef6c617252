"""Which of the four styles a program has.

    script      a Python file that calls `yaqd.ml.report`, with its values in `yaqd.ml.trial.params`
    objective   a function of an Optuna trial, as `study.optimize` calls it
    train       a function of a dict of values, as Ray Tune calls it
    command     any program: values as arguments, the metric by a pattern on its output

A file is read and not run here.
"""

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from yaqd.mapreduce.errors import JobError
from yaqd.mapreduce.loading import split_script

STYLES: Final = ("script", "objective", "train", "command")
#: names that a function's one argument has in the documents of both
_TRIAL: Final = "trial"
_CONFIG: Final = ("config", "params", "parameters", "hyperparameters", "hparams")
#: functions that are found without being named
_OBJECTIVE: Final = "objective"
_TRAIN: Final = ("train", "trainable", "train_fn", "train_func")


@dataclass(frozen=True, slots=True)
class Joined:
    """How a Python file joins."""

    path: str
    style: str
    #: the function that is called; "" where the file itself is run
    function: str = ""


def style_of(script: str, style: str | None = None) -> Joined:
    """Return how `SCRIPT` or `SCRIPT:FUNCTION` joins. `style`: what the user says it is.

    JobError: it cannot be read, or has no such function.
    """
    path, named = split_script(script)
    if not Path(path).is_file():
        raise JobError(f"no training script at {path}: give the path of a Python file (any other program: --command)")
    if style == "script":
        if named:
            raise JobError(f"{script}: the style script runs the whole file: leave out :{named}")
        return Joined(path, style)
    functions = _functions(path)
    if named:
        if named not in functions:
            raise JobError(f"{path} has no function {named}: it has {_listed(functions)}")
        return Joined(path, style or _told(path, named, functions[named]), named)
    found = _found(functions)
    if style is None:
        return Joined(path, *found) if found else Joined(path, "script")
    if found is None or found[0] != style:
        wanted = "objective(trial)" if style == "objective" else "train(config)"
        raise JobError(f"{path} has no function {wanted}: name yours, as in {path}:NAME")
    return Joined(path, *found)


def _functions(path: str) -> dict[str, list[str]]:
    """Return the names of a file's own functions with their positional arguments."""
    try:
        tree = ast.parse(Path(path).read_bytes(), path)
    except (SyntaxError, ValueError) as error:
        raise JobError(f"{path} is no Python: {error}") from None
    return {
        node.name: [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
    }


def _found(functions: dict[str, list[str]]) -> tuple[str, str] | None:
    """Return style and name of the function that makes a file an objective or a training function; None: a script."""
    if functions.get(_OBJECTIVE, [])[:1] == [_TRIAL]:
        return "objective", _OBJECTIVE
    for name in _TRAIN:
        if (arguments := functions.get(name)) and arguments[0] in _CONFIG:
            return "train", name
    return None


def _told(path: str, name: str, arguments: list[str]) -> str:
    if arguments[:1] == [_TRIAL]:
        return "objective"
    if arguments and arguments[0] in _CONFIG:
        return "train"
    raise JobError(
        f"{path}: {name}({', '.join(arguments)}) is neither {name}(trial) nor {name}(config): "
        "say which with --style objective or --style train"
    )


def _listed(functions: dict[str, list[str]]) -> str:
    return ", ".join(f"{name}({', '.join(arguments)})" for name, arguments in functions.items()) or "none"
