"""Runs a trial's program in this process, whatever its style. The channel of `yaqd.ml.report` is set before."""

import importlib.util
import runpy
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from tez_adapter.exploration.joins.begun import Begun, TrialError
from tez_adapter.exploration.joins.command import run_command
from tez_adapter.exploration.joins.objective import run_objective
from tez_adapter.exploration.joins.style import Joined
from tez_adapter.exploration.joins.train import run_train
from yaqd.mapreduce.errors import JobError
from yaqd.mapreduce.loading import user_traceback

_MODULE: Final = "yaq_trial_program"


def run_joined(joined: Joined, arguments: Sequence[str], begun: Begun) -> None:
    """Run a program to its end. TrialError: it failed.

    `arguments`: of a script those behind its name; of a command the whole line.
    """
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


def _run_script(path: str, arguments: Sequence[str]) -> None:
    sys.argv = [path, *arguments]
    sys.path.insert(0, str(Path(path).resolve().parent))
    runpy.run_path(path, run_name="__main__")


def _function(joined: Joined) -> Callable[[Any], Any]:
    sys.path.insert(0, str(Path(joined.path).resolve().parent))
    spec = importlib.util.spec_from_file_location(_MODULE, joined.path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[_MODULE] = module
    spec.loader.exec_module(module)
    found = getattr(module, joined.function, None)
    if not callable(found):
        raise TrialError(f"{joined.path} has no function {joined.function}")
    function: Callable[[Any], Any] = found
    return function
