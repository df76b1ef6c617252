"""What travels with a job: the options that say it, the same for every command that runs one."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

_Command = TypeVar("_Command", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--files", multiple=True, metavar="PATHS", help="Files for the tasks: PATH or PATH#NAME, commas."),
    click.option(
        "--py-files", multiple=True, metavar="PATHS", help=".py, .zip or .egg files to import from, likewise."
    ),
    click.option("--archives", multiple=True, metavar="PATHS", help="Archives to unpack for the tasks, likewise."),
)


def attached(command: _Command) -> _Command:
    """Add the options `files`, `py_files` and `archives`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
