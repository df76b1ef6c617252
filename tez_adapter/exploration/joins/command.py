"""Any program as a trial: values as arguments, the metric by a pattern on what it prints.

The program is in the process group of the trial, so what stops or ends the group stops or ends it too.
"""

import os
import re
import subprocess
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final

from tez_adapter.exploration.joins.begun import Begun, TrialError
from yaqd.ml.reporting import report_metrics

_NUMBER: Final = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|inf)"
#: a brace that is written twice, or a name in braces
_PLACE: Final = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")
_VALUE: Final = "value"
_ITERATION: Final = "iteration"
#: a line is looked at up to here; a progress bar without line ends is cut
_LINE_MAX: Final = 1 << 16
#: last lines that are shown of a program that failed
_TAIL: Final = 20
#: between SIGTERM and SIGKILL
_GRACE_S: Final = 5.0


def pattern_for(metric: str, pattern: str) -> re.Pattern[str]:
    """Return the pattern for a metric; "" stands for `NAME=NUMBER` and `NAME: NUMBER`. Raises ValueError.

    The group `value`, or the first one, is the metric. The group `iteration` counts epochs. Other named groups are
    other metrics.
    """
    if not pattern:
        return re.compile(rf"(?<![\w.-]){re.escape(metric)}\s*[=:]\s*(?P<value>{_NUMBER})", re.IGNORECASE)
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise ValueError(f"pattern {pattern!r}: {error}") from None
    if not compiled.groups:
        raise ValueError(f"pattern {pattern!r}: put the number into brackets, as in '{metric}=([0-9.]+)'")
    if _ITERATION in compiled.groupindex and compiled.groups == 1:
        raise ValueError(f"pattern {pattern!r}: it finds the iteration and no metric; add (?P<value>...)")
    return compiled


def command_line(words: Sequence[str], params: Mapping[str, Any]) -> list[str]:
    """Return a program's arguments: values in the place of `{name}`, or all of them behind as `--name value`.

    `{{` and `}}` stand for braces. Raises ValueError for a name that there is not.
    """
    shown = {name: _shown(value) for name, value in params.items()}
    named: set[str] = set()

    def value_of(found: re.Match[str]) -> str:
        if found[1] is None:
            return found[0][0]
        if found[1] not in shown:
            known = ", ".join(shown)
            raise ValueError(f"{found[0]} in the command: the space has {known} (a brace itself is {{{{ or }}}})")
        named.add(found[1])
        return shown[found[1]]

    filled = [_PLACE.sub(value_of, word) for word in words]
    return filled if named else [*filled, *(part for name, value in shown.items() for part in (f"--{name}", value))]


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def run_command(words: Sequence[str], begun: Begun) -> None:
    """Run a program to its end, or until the exploration says stop. TrialError: it failed, or printed no metric."""
    pattern = pattern_for(begun.metric, begun.pattern)
    line = command_line(words, begun.params)
    environment = {**os.environ, "YAQ_TRIAL": str(begun.number), "PYTHONUNBUFFERED": "1"}
    try:
        child = subprocess.Popen(
            line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment
        )
    except OSError as error:
        hint = " (on a cluster a file of yours needs --files)" if isinstance(error, FileNotFoundError) else ""
        raise TrialError(f"{line[0]} does not start: {error.strerror or error}{hint}") from None
    assert child.stdout is not None
    heard = _Heard(pattern, begun)
    try:
        is_stopped = _listen(child.stdout.fileno(), heard)
        if is_stopped:
            return
        code = child.wait()
    finally:
        _end(child)
    if code:
        ended = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        raise TrialError(f"{line[0]} {ended} after {heard.reports} reports", detail="\n".join(heard.tail))
    if not heard.reports:
        raise TrialError(
            f"{line[0]} printed no {begun.metric}: say with --pattern how to find it", detail="\n".join(heard.tail)
        )


class _Heard:
    """What a program has printed."""

    def __init__(self, pattern: re.Pattern[str], begun: Begun) -> None:
        self._pattern, self._metric = pattern, begun.metric
        self._done = begun.epoch
        self.reports = 0
        self.tail: deque[str] = deque(maxlen=_TAIL)

    def line(self, text: str) -> bool:
        """Report what a line says; return whether the program is to end."""
        self.tail.append(text)
        found = self._pattern.search(text)
        if found is None:
            return False
        named = found.groupdict()
        value = _number(named.get(_VALUE) if _VALUE in named else found[1])
        if value is None:
            return False
        iteration = _number(named.get(_ITERATION))
        self._done = self._done + 1 if iteration is None else int(iteration)
        others = {
            name: number
            for name, text in named.items()
            if name not in (_VALUE, _ITERATION, self._metric) and (number := _number(text)) is not None
        }
        self.reports += 1
        return report_metrics(self._done, {**others, self._metric: value}).stop


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def _listen(fd: int, heard: _Heard) -> bool:
    """Hear a program to the end of its output; return whether it is to end."""
    held = b""
    while more := os.read(fd, _LINE_MAX):
        sys.stdout.buffer.write(more)
        sys.stdout.buffer.flush()
        # a progress bar goes back to the begin of its line
        *lines, held = (held + more).replace(b"\r", b"\n").split(b"\n")
        held = held[-_LINE_MAX:]
        if any(heard.line(line[-_LINE_MAX:].decode(errors="replace")) for line in lines):
            return True
    return bool(held) and heard.line(held.decode(errors="replace"))


def _end(child: subprocess.Popen[bytes]) -> None:
    if child.stdout is not None:
        child.stdout.close()
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
