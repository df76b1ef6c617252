"""A working folder for each task: what its container has, and nothing that another task left there.

In Hadoop each attempt has a container of its own. A container of ours runs several, one after the other. So each goes
to a new folder with a link to every file of the container's. What it writes there, and the links that it removes, are
its own; the folder is gone when it has ended.
"""

import os
import shutil
from pathlib import Path
from typing import Final

_PREFIX: Final = "task-"


def own_folder(base: Path, attempt: str) -> Path:
    """Return where the attempt works; there is nothing yet."""
    return base / f"{_PREFIX}{attempt}"


def make(folder: Path, base: Path | None) -> None:
    """Make the folder, with what `base` has. Raises OSError."""
    folder.mkdir()
    if base is not None:
        _link_all(folder, base)


def enter(folder: Path) -> None:
    """Go there, for good."""
    os.chdir(folder)
    os.environ["PWD"] = str(folder)


def _link_all(folder: Path, base: Path) -> None:
    with os.scandir(base) as entries:
        for entry in entries:
            if not entry.name.startswith(_PREFIX):
                # of a link that which it leads to: a program that removes a file has removed its own link alone
                target = os.readlink(entry.path) if entry.is_symlink() else entry.path  # noqa: PTH115
                os.symlink(os.path.join(base, target), folder / entry.name)  # noqa: PTH118, PTH211


def leave(folder: Path) -> None:
    """Remove it with all that is in it; what cannot be removed goes with the container."""
    shutil.rmtree(folder, ignore_errors=True)
