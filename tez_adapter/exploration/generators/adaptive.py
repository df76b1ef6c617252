"""Configurations that a sampler of Optuna proposes, in a process of its own.

A sampler is somebody else's code: it may raise, hang or take all memory. So it runs in a child, is asked over two pipes
and has a time to answer. When it fails once, a line says so and random configurations go on in its place.
"""

import contextlib
import importlib.util
import json
import math
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from tez_adapter.exploration.generators.generator import GeneratorError
from tez_adapter.exploration.generators.plain import RandomGenerator
from yaqd.ml.space import Constant, FloatRange, IntRange, OneOf, Params, Space, SpaceError

#: what each sampler imports
NEEDS: Final[Mapping[str, tuple[str, ...]]] = {"tpe": ("optuna",), "gp": ("optuna", "scipy", "torch")}
#: a proposal may take so long; the first one imports Optuna
PATIENCE_S: Final = 60.0
_ANSWER_MAX: Final = 1 << 20
_SHOWN_MAX: Final = 300
_WORKER: Final = "tez_adapter.exploration.generators.worker"


class AdaptiveGenerator:
    """A sampler in a child process; random configurations where it has failed."""

    size: int | None = None
    is_adaptive = True

    def __init__(
        self,
        sampler: str,
        space: Space,
        seed: int,
        *,
        note: Callable[[str], None] = lambda line: None,
        patience_s: float = PATIENCE_S,
        command: tuple[str, ...] = (sys.executable, "-m", _WORKER),
    ) -> None:
        """`note`: is told in a line when the sampler failed. GeneratorError: a library is missing."""
        check_installed(sampler)
        self._sampler, self._space, self._seed = sampler, space, seed
        self._note, self._patience_s, self._command = note, patience_s, command
        self._random = RandomGenerator(space, seed)
        #: by number: values, and the best metric so far; NaN while there is none
        self._known: dict[int, tuple[Params, float]] = {}
        self._child: subprocess.Popen[bytes] | None = None
        self._is_broken = False
        self._lock = threading.Lock()

    def propose(self, number: int) -> Params | None:
        """Return what the sampler proposes, or a random draw once it has failed."""
        with self._lock:
            found = None if self._is_broken else self._asked(number)
            if found is None:
                found = self._random.propose(number)
                assert found is not None
            self._known[number] = (found, math.nan)
            return found

    def told(self, number: int, params: Any, value: float, is_final: bool) -> None:
        """Keep a trial's best metric for the next proposal; one that ended without any says nothing."""
        with self._lock:
            if is_final and not math.isfinite(value):
                self._known.pop(number, None)
            else:
                self._known[number] = (dict(params), value)

    def close(self) -> None:
        """End the child."""
        with self._lock:
            self._end()

    def _asked(self, number: int) -> Params | None:
        request = {
            "sampler": self._sampler,
            "seed": self._seed,
            "number": number,
            "space": [_as_json(name, each) for name, each in self._space.dimensions.items()],
            "trials": [[params, value if math.isfinite(value) else None] for params, value in self._trials()],
        }
        try:
            answer = json.loads(self._exchange(json.dumps(request).encode() + b"\n"))
            if "error" in answer:
                raise ValueError(str(answer["error"]))
            found = {
                name: each.value if isinstance(each, Constant) else answer["params"][name]
                for name, each in self._space.dimensions.items()
            }
            self._space.check(found)
        except (OSError, ValueError, TypeError, LookupError, SpaceError) as error:
            self._fail(str(error) or type(error).__name__)
            return None
        return found

    def _trials(self) -> list[tuple[Params, float]]:
        return [self._known[number] for number in sorted(self._known)]

    def _exchange(self, request: bytes) -> bytes:
        """Return the child's line. Raises OSError: it has ended; TimeoutError: it took too long."""
        if self._child is None:
            environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
            self._child = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                start_new_session=True,
            )
        assert self._child.stdin is not None and self._child.stdout is not None
        until = time.monotonic() + self._patience_s
        _write(self._child.stdin.fileno(), request, until)
        return _read_line(self._child.stdout.fileno(), until)

    def _fail(self, said: str) -> None:
        self._is_broken = True
        self._end()
        shown = " ".join(said.split())[:_SHOWN_MAX]
        self._note(f"generator {self._sampler} failed ({shown}): random configurations go on in its place")

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


def check_installed(sampler: str) -> None:
    """Raise GeneratorError where a library that the sampler needs is missing; nothing is imported."""
    missing = [name for name in NEEDS[sampler] if importlib.util.find_spec(name) is None]
    if missing:
        remedy = "pip install torch" if missing == ["torch"] else "pip install 'yaqd[ml]'"
        raise GeneratorError(f"generator {sampler} needs {missing[0]}: {remedy} (random and grid need nothing)")


def _as_json(name: str, each: Any) -> dict[str, Any]:
    if isinstance(each, FloatRange):
        return {"name": name, "kind": "float", "low": each.low, "high": each.high, "log": each.log}
    if isinstance(each, IntRange):
        high = each.low + each.step * (each.many - 1)
        return {"name": name, "kind": "int", "low": each.low, "high": high, "log": each.log, "step": each.step}
    if isinstance(each, OneOf):
        return {"name": name, "kind": "choice", "values": list(each.values)}
    return {"name": name, "kind": "constant"}


def _write(fd: int, data: bytes, until: float) -> None:
    os.set_blocking(fd, False)
    left = memoryview(data)
    with selectors.DefaultSelector() as selector:
        selector.register(fd, selectors.EVENT_WRITE)
        while left:
            if not selector.select(max(0.0, until - time.monotonic())):
                raise TimeoutError("no answer in time")
            with contextlib.suppress(BlockingIOError):
                left = left[os.write(fd, left) :]


def _read_line(fd: int, until: float) -> bytes:
    found = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(fd, selectors.EVENT_READ)
        while not found.endswith(b"\n"):
            if not selector.select(max(0.0, until - time.monotonic())):
                raise TimeoutError("no answer in time")
            more = os.read(fd, 1 << 16)
            if not more:
                raise OSError("its process ended")
            found += more
            if len(found) > _ANSWER_MAX:
                raise ValueError("its answer is too long")
    return bytes(found)
