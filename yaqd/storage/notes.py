"""What is odd about files that were read, and no error: a line each, kept for the process and logged.

Kept as the statistics are: one task runs in a process at a time, and takes what came since its start.
"""

import logging
from typing import Final

log = logging.getLogger(__name__)

_NOTES_MAX: Final = 20
_notes: list[str] = []


def note(line: str) -> None:
    if line not in _notes and len(_notes) < _NOTES_MAX:
        _notes.append(line)
        log.warning("%s", line)


def storage_notes() -> tuple[str, ...]:
    """Return the notes since the process began, oldest first."""
    return tuple(_notes)
