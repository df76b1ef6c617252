"""Libraries that the tasks of a job share: imported once by the process that forks them, not by each task again.

They are what the program's file imports at its top, before it does anything else, from the standard library or
site-packages. A task would run these imports first, in a process that has run nothing else; so it finds the same where
they ran before the fork. What the file does after that, and whatever it ships, runs in each task anew.

The first task tries them, with its own import path, one statement after the other. It stops at a statement that leaves
a thread behind, an open file, or a generator of random numbers. Another environment, folder, umask, import path or
signal handler stops it, too: a process that forks must have one thread, and what the others are belongs to one process
alone. It stops as well where anything came from outside of the libraries, as a module that the job ships under a
library's name.

Trials of an exploration are less strict: they may share what makes a generator of random numbers or adds to the
environment, as scikit-learn does. Each trial has the same values then, where a process of its own would draw some.
"""

import ast
import gc
import importlib.util
import json
import logging
import os
import random
import signal
import site
import struct
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final

#: a module, and the names that are taken from it: some may be modules, too
Import = tuple[str, tuple[str, ...]]

log = logging.getLogger(__name__)

SHARE_KEY: Final = "yaq.job.share-imports"
_STATEMENTS_MAX: Final = 200
_LENGTH: Final = struct.Struct(">I")


class SharedImports:
    """What a process has found of its tasks' program. The first task that reaches the program tries it out."""

    def __init__(self, *, is_on: bool, is_strict: bool = True) -> None:
        """`is_strict`: tasks share no generator of random numbers and no environment."""
        #: None: nobody has tried yet
        self._fit: list[Import] | None = None if is_on else []
        self._is_loaded = not is_on
        self._is_strict = is_strict

    def load(self) -> None:
        """Load the libraries, in the process that forks, before a task."""
        if self._fit is None or self._is_loaded:
            return
        self._is_loaded = True
        before = sys.path[:]
        sys.path[:] = [entry for entry in before if _is_below_library(entry + os.sep)]
        try:
            for name, names in self._fit:
                __import__(name, fromlist=names)
        except Exception:
            log.warning("the tasks import by themselves what this process cannot", exc_info=True)
        finally:
            sys.path[:] = before

    def try_out(self, script: Path) -> None:
        """Find the script's imports that tasks can share, in a task, before its program is loaded."""
        if self._fit is None:
            self._fit = list(_fit(leading_imports(script), is_strict=self._is_strict))

    def with_report(self, outcome: bytes) -> bytes:
        """Add to a task's outcome what it has found, in the task, at its end."""
        report = json.dumps(self._fit).encode("ascii")
        return _LENGTH.pack(len(report)) + report + outcome

    def learn(self, reported: bytes) -> bytes:
        """Take in what a task has found and return its outcome, in the process that forks, after the task."""
        end = _LENGTH.size + int(_LENGTH.unpack_from(reported)[0])
        found = json.loads(reported[_LENGTH.size : end])
        if self._fit is None and found is not None:
            self._fit = [(str(name), tuple(map(str, names))) for name, names in found]
        return reported[end:]


def leading_imports(script: Path) -> list[Import]:
    """List the imports at the file's top, up to the first statement that is none.

    Empty for a file that cannot be read or does not parse.
    """
    try:
        body = ast.parse(script.read_bytes()).body
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    found: list[Import] = []
    for number, node in enumerate(body[:_STATEMENTS_MAX]):
        match node:
            case ast.Expr(ast.Constant(str())) if number == 0:
                pass
            case ast.Import(names):
                found += [(alias.name, ()) for alias in names]
            case ast.ImportFrom(str(module), names, 0):
                found.append((module, tuple(alias.name for alias in names)))
            case _:
                break
    return found


def _fit(imports: Iterable[Import], *, is_strict: bool) -> Iterator[Import]:
    """Makes the imports, and yields those that a process may make for others, up to the first that it may not."""
    before, main = _state(), sys.modules["__main__"]
    known = dict(sys.modules)
    for name, names in imports:
        try:
            if not _is_library(name.partition(".")[0]):
                return
            __import__(name, fromlist=names)
        except BaseException:  # the program will see it itself
            return
        new = [module for key, module in list(sys.modules.items()) if key not in known and module is not main]
        if new:
            known.update(sys.modules)
            if not (_is_as_before(before, new) if is_strict else _is_forkable(before, new)):
                return
        yield name, names


def _is_as_before(before: tuple[Any, ...], new: Iterable[ModuleType]) -> bool:
    """Whether an import has changed nothing that a task would share."""
    return all(map(_is_of_library, new)) and _state() == before and not _has_new_generators()


def _is_forkable(before: tuple[Any, ...], new: Iterable[ModuleType]) -> bool:
    """Whether an import has left a process that can fork, and has only added to its environment."""
    *rest, environment, folder, path = _state()
    *rest_before, environment_before, folder_before, path_before = before
    return (
        (rest, folder, path) == (rest_before, folder_before, path_before)
        and environment_before.items() <= environment.items()
        and all(_is_of_library(module) or _is_part_of_library(module) for module in new)
    )


def _is_part_of_library(module: ModuleType) -> bool:
    """Whether a module that was not found as others are, as parts of an extension are, belongs to a library."""
    top = sys.modules.get(module.__name__.partition(".")[0])
    return top is not None and top is not module and _is_of_library(top)


def _is_library(top: str) -> bool:
    """Whether the import path leads to a library, or it is loaded already. Nothing runs."""
    if top in sys.modules:
        return True
    spec = importlib.util.find_spec(top)
    return spec is not None and _is_at_home(spec.origin, spec.submodule_search_locations)


def _is_of_library(module: ModuleType) -> bool:
    spec = getattr(module, "__spec__", None)
    if spec is None:  # made by a library as it went along
        return getattr(module, "__file__", None) is None
    return _is_at_home(spec.origin, spec.submodule_search_locations)


def _is_at_home(origin: str | None, folders: Iterable[str] | None) -> bool:
    if origin is not None and origin not in ("built-in", "frozen"):
        return _is_below_library(origin)
    return all(map(_is_below_library, folders or ()))


def _is_below_library(path: str) -> bool:
    return Path(path).is_absolute() and path.startswith(_library_folders())


def _library_folders() -> tuple[str, ...]:
    standard = (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"))
    return tuple(folder + os.sep for folder in (*site.getsitepackages(), *standard))


def _state() -> tuple[Any, ...]:
    """What belongs to this process alone, and a library might change."""
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    return (
        next((line for line in status.splitlines() if line.startswith("Umask")), ""),
        len(os.listdir("/proc/self/task")),  # noqa: PTH208 - not only Python's own threads
        sorted(_open_files()),
        [signal.getsignal(number) for number in sorted(signal.valid_signals())],
        signal.pthread_sigmask(signal.SIG_BLOCK, ()),
        dict(os.environ),
        Path.cwd(),
        list(sys.path),
    )


def _open_files() -> Iterator[tuple[str, str]]:
    for number in os.listdir("/proc/self/fd"):  # noqa: PTH208
        try:
            yield number, os.readlink(f"/proc/self/fd/{number}")  # noqa: PTH115
        except OSError:
            pass  # the listing's own


def _has_new_generators() -> bool:
    """Whether there is one of random numbers that each task would have a copy of. What the fork found is frozen, and
    not looked at; those that a child seeds anew do not count."""
    kinds: tuple[type, ...] = (random.Random,)
    own = [getattr(random, "_inst", None)]
    numpy_random: Any = sys.modules.get("numpy.random")
    if numpy_random is not None:
        kinds += (numpy_random.RandomState, numpy_random.Generator)
        own.append(numpy_random.mtrand._rand)
    for found in gc.get_objects():
        kind = type(found)  # never `isinstance`, which asks objects that stand for others
        if issubclass(kind, kinds) and kind is not random.SystemRandom and not any(found is one for one in own):
            return True
    return False
