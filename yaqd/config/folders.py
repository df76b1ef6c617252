"""Which files of a configuration folder are read, and what to say of a folder that has none of them."""

from pathlib import Path
from typing import Final

from yaqd.config.configuration import DEFAULT_RESOURCES
from yaqd.config.defaults import QUEUES_FILE
from yaqd.config.resource_types import NODE_FILE, SIZES_FILE, TYPES_FILE

#: in the order in which they are checked
FILES: Final = (
    *(f"{resource}-site.xml" for resource in DEFAULT_RESOURCES),
    QUEUES_FILE,
    *(TYPES_FILE, NODE_FILE, SIZES_FILE),
)


def lacks_files(folder: Path) -> str | None:
    """Say that a folder has nothing that anybody reads, and which one may have been meant; None: it has.
    Blocking."""
    if _has_files(folder):
        return None
    meant = folder / "conf"
    return f"no configuration file in {folder}" + (f"; did you mean {meant}?" if _has_files(meant) else "")


def _has_files(folder: Path) -> bool:
    return any((folder / name).exists() for name in FILES)
