"""SIGTERM and SIGHUP end a command as Ctrl-C does: it clears up and says what goes on without it."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from types import FrameType
from typing import Final, NoReturn, ParamSpec, TypeVar

import click

from yaqd.cli.exits import INTERRUPTED

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

_SIGNALS: Final = (signal.SIGTERM, signal.SIGHUP)
#: a shell's code for a program that a signal has ended, less the signal's number
_BY_SIGNAL: Final = 128


class EndedBySignal(KeyboardInterrupt):
    """The process was told to end."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


def exit_code_of(end: KeyboardInterrupt) -> int:
    """Returns 130 for Ctrl-C, 143 for SIGTERM, 129 for SIGHUP."""
    return _BY_SIGNAL + end.number if isinstance(end, EndedBySignal) else INTERRUPTED


def say_last(line: str) -> None:
    """Writes to standard error, which may have ended together with its terminal."""
    with suppress(OSError):
        click.echo(f"yaq: {line}", err=True)


def clears_up(command: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Has SIGTERM and SIGHUP raise EndedBySignal in the command, whose exit code tells of it."""

    @wraps(command)
    def clearing(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        try:
            with _raising():
                return command(*args, **kwargs)
        except EndedBySignal as end:
            say_last(f"ended by {end}")
            raise click.exceptions.Exit(exit_code_of(end)) from None

    return clearing


@contextmanager
def _raising() -> Iterator[None]:
    """A signal that is ignored, as SIGHUP is by nohup, stays so, and one that has a handler keeps it."""
    is_main = threading.current_thread() is threading.main_thread()
    numbers = [number for number in _SIGNALS if is_main and signal.getsignal(number) is signal.SIG_DFL]

    def end(number: int, frame: FrameType | None) -> NoReturn:
        for each in numbers:
            signal.signal(each, _let_go)  # a terminal that closes may send both: clearing up goes on
        raise EndedBySignal(number)

    for number in numbers:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


def _let_go(number: int, frame: FrameType | None) -> None:
    """Nothing."""
