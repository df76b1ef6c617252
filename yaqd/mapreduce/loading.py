"""From a script file to its one job class, with one clear line for each mistake on the way."""

import importlib.util
import inspect
import linecache
import sys
import traceback
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any, Final, TypeVar

from yaqd.mapreduce.errors import JobError
from yaqd.mapreduce.formats import InputFormat, OutputKind
from yaqd.mapreduce.job import Job
from yaqd.mapreduce.misnamed import refuse_misnamed
from yaqd.mapreduce.params import declared_params

_Base = TypeVar("_Base")

#: packages whose frames a job's author need not see
_OWN_PACKAGES: Final = ("yaqd", "rm", "nm", "riffle_merger", "tez_adapter")
_OWN_ROOT: Final = Path(__file__).resolve().parents[2]
_OWN_FOLDERS: Final = tuple(str(_OWN_ROOT / package) + "/" for package in _OWN_PACKAGES)
_TRACEBACK_CHARS_MAX: Final = 8000

#: values that a task makes a job of: params, counters, task
_MADE_OF: Final = 3
#: methods with the arguments they are called with, after self
_ARGUMENTS: Final = {"map": 2, "combine": 2, "reduce": 2, "partition": 2, "setup": 0, "cleanup": 0}
#: methods of which no pairs are read, so that a `yield` there would keep their lines from running; with the remedy
_NO_PAIRS: Final = {
    "setup": "leave the yield out; cleanup() may yield pairs",
    "partition": "write `return NUMBER` in place of the yield",
}


def split_script(text: str) -> tuple[str, str | None]:
    """Return `script.py:ClassName` as path and class name; the name is None where it is left out."""
    path, colon, name = text.rpartition(":")
    return (path, name) if colon and name.isidentifier() and path.endswith(".py") else (text, None)


def load_job(
    script: str | Path, class_name: str | None = None, *, before: Callable[[Path], None] | None = None
) -> type[Job]:
    """Return the job class that a script defines. JobError says what is wrong with the script. `before`: told the file,
    once all is there that it can import."""
    job, path = load_class(script, Job, "yaqd.mapreduce.Job", class_name, before=before)
    return check_job(job, path)


def load_class(
    script: str | Path,
    base: type[_Base],
    base_name: str,
    class_name: str | None = None,
    *,
    before: Callable[[Path], None] | None = None,
) -> tuple[type[_Base], str]:
    """Return the one public subclass of `base` that a script defines, or the one named, and the script's path. Nothing
    of it is checked but that it is there. `base_name`: what users import it as. Raises as `load_job` does."""
    path, named = split_script(str(script))
    class_name = class_name or named
    module = load_module(Path(path), before=before)
    jobs = {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, base) and value.__module__ == module.__name__
    }
    if class_name is not None:
        if class_name not in jobs:
            known = f"it has {', '.join(jobs)}" if jobs else f"it has no subclass of {base_name}"
            raise JobError(f"{path} has no job class {class_name}: {known}")
        return jobs[class_name], path
    public = [job for name, job in jobs.items() if not name.startswith("_")]
    if not public:
        raise JobError(f"{path} has no job class: define a subclass of {base_name} in it")
    if len(public) > 1:
        names = ", ".join(job.__name__ for job in public)
        raise JobError(f"{path} has {len(public)} job classes ({names}): name one, as in {path}:{public[-1].__name__}")
    return public[0], path


def check_job(job: type[Job], path: str, *, streams: int = 1) -> type[Job]:
    """Return the class itself, once its formats exist and its methods have the names and arguments that they will be
    called with. `streams`: iterators that its reduce gets."""
    _check_making(job, path)
    for param in declared_params(job).values():
        if hasattr(Job, param.attribute) or param.attribute in vars(Job()):
            raise JobError(f"{path}: {job.__name__}.{param.attribute} cannot be an option: every job has that name")
    refuse_misnamed(job, path)
    InputFormat.parse(job.input_format)
    OutputKind.of(job.output_format)
    if not isinstance(job.name, str):
        raise JobError(f"{path}: {job.__name__}.name is {job.name!r}: give text")
    if job.partitioner not in ("hash", "range"):
        raise JobError(f"{path}: {job.__name__}.partitioner is {job.partitioner!r}: use 'hash' or 'range'")
    if type(job.reduces) is not int or job.reduces < 0:
        raise JobError(f"{path}: {job.__name__}.reduces is {job.reduces!r}: give a number from 0")
    for name, count in (_ARGUMENTS | {"reduce": 1 + streams}).items():
        method = getattr(job, name)
        if not callable(method):
            raise JobError(f"{path}: {job.__name__}.{name} is no method")
        try:
            inspect.signature(method).bind(*range(count + 1))
        except TypeError:
            expected = ", ".join(inspect.signature(getattr(Job, name)).parameters)
            if name == "reduce" and streams > 1:
                expected = ", ".join(["self", "key", *(f"values_{number}" for number in range(1, streams + 1))])
            raise JobError(
                f"{path}: {job.__name__}.{name}{inspect.signature(method)} cannot be called: "
                f"define it as {name}({expected})"
            ) from None
    _check_running(job, path)
    return job


def _check_running(job: type[Job], path: str) -> None:
    """JobError for a method whose lines would not run when it is called."""
    for name in _ARGUMENTS:
        method = getattr(job, name)
        if inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method):
            raise JobError(
                f"{path}: {job.__name__}.{name} is an async method, which no task awaits: write `def {name}`"
            )
        if name in _NO_PAIRS and inspect.isgeneratorfunction(method):
            raise JobError(f"{path}: {job.__name__}.{name}() has a yield, so it would never run: {_NO_PAIRS[name]}")


def _check_making(job: type[Job], path: str) -> None:
    try:
        inspect.signature(job).bind(*range(_MADE_OF))
    except TypeError:
        made = f"{job.__name__}.__init__{inspect.signature(job.__init__)}"
        remedy = "do in setup(self) what a task begins with"
        raise JobError(f"{path}: {made} cannot be called by a task: {remedy}") from None


class _ScriptLoader(SourceFileLoader):
    """Runs a file as `python FILE` does: from its text as it is now, and no folder of compiled code beside it."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        data = self.get_data(path)
        code: CodeType = self.source_to_code(data, path)
        lines = importlib.util.decode_source(data).splitlines(keepends=True)
        # a task works in a folder of its own, where a relative path leads nowhere
        linecache.cache[path] = (len(data), None, lines, path)
        return code


def load_module(path: Path, *, before: Callable[[Path], None] | None = None) -> Any:
    """Import a script under a name of its own, as `python FILE` runs it. JobError says what is wrong with it. `before`:
    told the file first."""
    if before is not None:
        before(path)
    if not path.is_file():
        raise JobError(f"no job script at {path}: give the path of a Python file")
    name = f"yaq_job_{path.stem}"  # never the name of a module that something else imports
    if path.suffix != ".py":
        raise JobError(f"{path} is no Python file: its name must end in .py")
    loader = _ScriptLoader(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        if isinstance(error, JobError) and (own := _line_in(path, error)):
            raise JobError(f"{path}:{own}: {error}", detail=error.detail) from None  # it says all that is to be said
        summary = traceback.format_exception_only(error)[-1].strip()
        text = f"{path} does not import: {summary}{_remedy(path, error)}"
        raise JobError(text, detail=user_traceback(error)) from None
    return module


def _line_in(path: Path, error: BaseException) -> int:
    """Return the last line of a file that an exception went through; 0: none."""
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno or 0 for frame in reversed(frames) if frame.filename == str(path)), 0)


def _remedy(path: Path, error: BaseException) -> str:
    """For a module that lies beside the script, where no task would find it."""
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    if not missing:
        return ""
    beside = path.parent / missing.partition(".")[0]
    module = beside.with_suffix(".py")
    if module.is_file():
        return f"; tasks have only what is sent along: add --py-files {module}"
    return f"; tasks have only what is sent along: zip {beside} and add it with --py-files" if beside.is_dir() else ""


def user_traceback(error: BaseException) -> str:
    """Return the traceback of an exception without the frames of this project and of the import machinery."""
    trace = traceback.TracebackException.from_exception(error, limit=-100)
    seen: set[int] = set()
    part: traceback.TracebackException | None = trace
    while part is not None and id(part) not in seen:
        seen.add(id(part))
        part.stack = traceback.StackSummary.from_list([frame for frame in part.stack if _is_users(frame.filename)])
        part = part.__cause__ or part.__context__
    text = "".join(trace.format()).rstrip()
    return text if len(text) <= _TRACEBACK_CHARS_MAX else "...\n" + text[-_TRACEBACK_CHARS_MAX:]


def _is_users(filename: str) -> bool:
    return not filename.startswith((*_OWN_FOLDERS, "<frozen "))
