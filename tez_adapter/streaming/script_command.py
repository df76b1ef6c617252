"""How Hadoop Streaming turns a command line into a process: its words, and where the program lies.

Blanks part words, except within quotes of either kind. A quote ends the word before it, and nothing escapes: a
backslash is itself, so that `awk -F\\t` reaches awk as it was written.
"""

import os
import re
import stat
from contextlib import suppress

#: a quoted piece (to the end where nothing closes it), or a piece without blanks and quotes
_WORD = re.compile(r"""'([^']*)'?|"([^"]*)"?|([^ '"]+)""", re.DOTALL)


def split_command(command: str) -> list[str]:
    """Split a command into words; empty ones do not count."""
    return [word for match in _WORD.finditer(command) if (word := next(filter(None, match.groups()), ""))]


def executable(program: str, path: str) -> str | None:
    """Find the program by the child's PATH (Popen would look along ours)."""
    if "/" in program:
        return None
    for folder in path.split(":"):
        candidate = os.path.join(folder, program)  # noqa: PTH118
        if os.path.isfile(candidate) and os.access(candidate, os.X_OK):  # noqa: PTH113
            return candidate
    return None


def make_executable(program: str) -> None:
    """Let a script that was sent along be run, whether or not it was executable where it came from."""
    if not program.startswith("/"):
        with suppress(OSError):
            os.chmod(program, os.stat(program).st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)  # noqa: PTH101, PTH116
