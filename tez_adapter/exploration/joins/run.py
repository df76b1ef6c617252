"""Runs a trial's program in this process, whatever its style. The channel of `yaqd.ml.report` is set before."""

import ast
import itertools
import random
import runpy
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from tez_adapter.exploration.joins.begun import Begun, TrialError
from tez_adapter.exploration.joins.command import run_command
from tez_adapter.exploration.joins.objective import run_objective
from tez_adapter.exploration.joins.style import Joined
from tez_adapter.exploration.joins.train import run_train
from yaqd.mapreduce.errors import JobError
from yaqd.mapreduce.loading import user_traceback

_MODULE: Final = "yaq_trial_program"
_SEEDS: Final = 1 << 32
#: ends of calls by which Optuna and Ray Tune run trials
_STUDIES: Final = (".optimize", "tune.run", "tune.Tuner", "Tuner.fit")


def run_joined(joined: Joined, arguments: Sequence[str], begun: Begun) -> None:
    """Run a program to its end. TrialError: it failed.

    `arguments`: of a script those behind its name; of a command the whole line.
    """
    _seed(begun)
    named = arguments[0] if joined.style == "command" else joined.path
    try:
        if joined.style == "command":
            run_command(arguments, begun)
        elif joined.style == "script":
            _run_script(joined.path, arguments)
        elif joined.style == "objective":
            run_objective(_function(joined), begun)
        else:
            run_train(_function(joined), begun)
    except TrialError:
        raise
    except SystemExit as end:
        if end.code not in (None, 0):
            said = f"code {end.code}" if isinstance(end.code, int) else str(end.code)
            raise TrialError(f"{named} ended: {said}") from None
    except JobError as error:
        raise TrialError(f"{named}: {error}", detail=error.detail or user_traceback(error)) from None
    except Exception as error:
        said = " ".join(str(error).split())
        raise TrialError(f"{named} failed: {type(error).__name__}: {said}", detail=user_traceback(error)) from None


def _seed(begun: Begun) -> None:
    """Seed what a program draws from without saying so, by the exploration's seed and the trial's number."""
    own = (begun.seed * 1_000_003 + begun.number) % _SEEDS
    random.seed(own)
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed(own)


def _run_script(path: str, arguments: Sequence[str]) -> None:
    sys.argv = [path, *arguments]
    sys.path.insert(0, str(Path(path).resolve().parent))
    runpy.run_path(path, run_name="__main__")


def _function(joined: Joined) -> Callable[[Any], Any]:
    """Return the function of a file. What the file does before it begins a study of its own runs, and no more."""
    sys.path.insert(0, str(Path(joined.path).resolve().parent))
    tree = ast.parse(Path(joined.path).read_bytes(), joined.path)
    tree.body = list(itertools.takewhile(lambda statement: not _begins_study(statement), tree.body))
    module = ModuleType(_MODULE)
    module.__file__ = joined.path
    sys.modules[_MODULE] = module
    exec(compile(tree, joined.path, "exec"), vars(module))
    found = getattr(module, joined.function, None)
    if not callable(found):
        raise TrialError(f"{joined.path} has no function {joined.function} before it begins a study")
    function: Callable[[Any], Any] = found
    return function


def _begins_study(statement: ast.stmt) -> bool:
    """Tell whether a statement at a file's top has Optuna or Ray Tune run trials. What is in a function waits."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return False
    called = (node.func for node in ast.walk(statement) if isinstance(node, ast.Call))
    return any(ast.unparse(function).endswith(_STUDIES) for function in called) and not _is_guarded(statement)


def _is_guarded(statement: ast.stmt) -> bool:
    """Tell whether it is `if __name__ == "__main__":`, which is not so here."""
    return isinstance(statement, ast.If) and "__name__" in ast.unparse(statement.test)
