"""Which code a result is of: a digest over all files of ours that a trial runs, and over what they run on.

Those are the scheduler, the nodes' queues, the policies and the simulator, and what these import. Python, numpy and
whether what decides is compiled are in it, too: arithmetic may differ, and processor time does. What makes pages of
results is left out: a page may be made anew by newer code. So is the list of cells, since the key of a trial says all
that is run in it.
"""

import hashlib
import platform
from collections.abc import Iterable
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from yaqd.model.compiled import is_compiled

PACKAGES: Final = (
    "rm.scheduler",
    "nm.node_queue",
    "nm.distributed",
    "yaqd.config",
    "yaqd.model",
    "yaqd.policies",
    "yaqd.sim",
)
#: of these packages, what changes no result: files, and a folder
_LEFT_OUT: Final = (
    "yaqd.sim/study/design.py",
    "yaqd.sim/study/report/",
    "yaqd.sim/experiments/plots.py",
    "yaqd.sim/experiments/report.py",
)


def code_files() -> list[tuple[str, Path]]:
    """Return the files that count, each with its name below its package, in order."""
    found: list[tuple[str, Path]] = []
    for package in PACKAGES:
        spec = find_spec(package)
        for place in (spec.submodule_search_locations or ()) if spec is not None else ():
            root = Path(place)
            named = ((f"{package}/{path.relative_to(root).as_posix()}", path) for path in root.rglob("*.py"))
            found += [(name, path) for name, path in named if not name.startswith(_LEFT_OUT)]
    return sorted(found)


def runs_on() -> str:
    """Return what the code runs on, as far as it could change a figure."""
    how = "compiled" if is_compiled() else "as Python"
    return f"Python {platform.python_version()}, numpy {version('numpy')}, {how}"


def digest_of(files: Iterable[tuple[str, Path]], on: str = "") -> str:
    """Return one word for the names and the contents of all these files, and for what they run on."""
    total = hashlib.sha256(on.encode())
    for name, path in files:
        text = path.read_bytes()
        total.update(f"{name} {len(text)}\n".encode())
        total.update(text)
    return total.hexdigest()[:16]


def code_digest() -> str:
    """Return the digest of the code that runs now."""
    return digest_of(code_files(), runs_on())
