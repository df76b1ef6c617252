"""From a script file to its training job: a class for data-parallel training, or a program that calls `report`."""

import ast
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Final

from yaqd.mapreduce.errors import JobError
from yaqd.mapreduce.loading import load_class, split_script
from yaqd.mapreduce.params import declared_params
from yaqd.ml.iterative import IterativeJob

_BASE: Final = "IterativeJob"
#: methods with the arguments they are called with, after self
_ARGUMENTS: Final = {"load": 1, "step": 2, "initial": 0, "combine": 2, "run": 1, "done": 1}
_ALWAYS: Final = ("load", "step")
_STEPPED: Final = ("initial", "combine")


def is_iterative(script: str | Path) -> bool:
    """Return whether a script is to be loaded as a class: it names one (`train.py:Train`), or has one that is derived
    from IterativeJob. Other scripts are programs. The script is read and not run. JobError: it cannot be read."""
    path, named = split_script(str(script))
    if not Path(path).is_file():
        raise JobError(f"no training script at {path}: give the path of a Python file")
    try:
        tree = ast.parse(Path(path).read_bytes(), path)
    except (SyntaxError, ValueError) as error:
        raise JobError(f"{path} is no Python: {error}") from None
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    derived = any(_last_name(base) == _BASE for node in classes for base in node.bases)
    if named and not derived and not any(node.name == named for node in classes) and not _imports(tree, named):
        raise JobError(f"{path} has no job class {named}: it has no subclass of yaqd.ml.{_BASE}")
    return bool(named) or derived


def load_iterative(
    script: str | Path, class_name: str | None = None, *, before: Callable[[Path], None] | None = None
) -> type[IterativeJob]:
    """Return the training class that a script defines, once its methods can be called. JobError says what is wrong.
    `before`: told the file, once all is there that it can import."""
    job, path = load_class(script, IterativeJob, f"yaqd.ml.{_BASE}", class_name, before=before)
    return check_iterative(job, path)


def check_iterative(job: type[IterativeJob], path: str) -> type[IterativeJob]:
    """Return the class itself, once it has the methods that training calls. JobError: one is missing, or has other
    arguments."""
    needed = _ALWAYS if job.overrides_run() else _ALWAYS + _STEPPED
    missing = [name for name in needed if getattr(job, name) is getattr(IterativeJob, name)]
    if missing:
        either = "" if set(missing) <= set(_ALWAYS) else ", or run(evaluate)"
        calls = " and ".join(_signature(name) for name in missing)
        raise JobError(f"{path}: {job.__name__} has no {calls}: define it{either}")
    for name, count in _ARGUMENTS.items():
        method = getattr(job, name)
        if not callable(method):
            raise JobError(f"{path}: {job.__name__}.{name} is no method")
        if inspect.iscoroutinefunction(method) or inspect.isgeneratorfunction(method):
            raise JobError(f"{path}: {job.__name__}.{name} must return a value: leave out its async or yield")
        try:
            inspect.signature(method).bind(*range(count + 1))
        except TypeError:
            raise JobError(
                f"{path}: {job.__name__}.{name}{inspect.signature(method)} cannot be called: "
                f"define it as {_signature(name)}"
            ) from None
    for name in ("partitions", "iterations"):
        count = getattr(job, name)
        if type(count) is not int or count < 1:
            raise JobError(f"{path}: {job.__name__}.{name} is {count!r}: give a number from 1")
    for param in declared_params(job).values():
        if hasattr(IterativeJob, param.attribute) or param.attribute in vars(IterativeJob()):
            raise JobError(f"{path}: {job.__name__}.{param.attribute} cannot be an option: every job has that name")
    try:
        inspect.signature(job).bind({}, seed=0, data=(), iterations=0)
    except TypeError:
        raise JobError(f"{path}: {job.__name__}.__init__ takes other arguments than IterativeJob's") from None
    return job


def _signature(name: str) -> str:
    return f"{name}({', '.join(inspect.signature(getattr(IterativeJob, name)).parameters)})"


def _imports(tree: ast.Module, name: str) -> bool:
    """Tell whether the script may have the name from elsewhere."""
    imported = (alias for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names)
    return any(name == (alias.asname or alias.name) or alias.name == "*" for alias in imported)


def _last_name(base: ast.expr) -> str:
    return base.attr if isinstance(base, ast.Attribute) else base.id if isinstance(base, ast.Name) else ""
