"""Which code a result is of: a digest over all files that could change one.

Those are the scheduler, the nodes' queues, the policies and the simulator. What makes pages of results is left out:
a page may be made anew by newer code. So is the list of cells, since the key of a trial says all that is run in it.
"""

import hashlib
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Final

PACKAGES: Final = ("rm.scheduler", "nm.node_queue", "yaqd.policies", "yaqd.sim")
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


def digest_of(files: Iterable[tuple[str, Path]]) -> str:
    """Return one word for the names and the contents of all these files."""
    total = hashlib.sha256()
    for name, path in files:
        text = path.read_bytes()
        total.update(f"{name} {len(text)}\n".encode())
        total.update(text)
    return total.hexdigest()[:16]


def code_digest() -> str:
    """Return the digest of the code that runs now."""
    return digest_of(code_files())
