"""Compiles what decides: hatchling calls this when it builds a wheel, and it does nothing unless YAQD_COMPILED=1.

    YAQD_COMPILED=1 pip wheel --no-deps --wheel-dir dist .
    python scripts/compiled.py FOLDER      a copy of the checkout, in place (scripts/compiled.sh)

The modules are named in pyproject.toml. mypyc makes C of their types, which mypy checks anyway; the same source runs as
Python everywhere else. The compiler works in a copy, so nothing is left in the checkout.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

#: what the build needs, in the versions of constraints.txt
_COMPILER: Final = ("mypy", "setuptools", "numpy", "types-protobuf")
#: what mypyc is given: it must follow imports into packages that the build does not have
_BUILD: Final = """
import os
import sys
from mypyc.build import mypycify
from setuptools import setup
flags = ["--config-file=", "--ignore-missing-imports", "--follow-untyped-imports", "--python-version=3.11"]
# for tests: it takes half as long where gcc need not make the code fast
level = "0" if os.environ.get("YAQD_COMPILED_QUICKLY") else "2"
# one file of C for each module: one for all of them takes gcc twice as long, and is no faster
made = mypycify([*flags, *sys.argv.pop().split(",")], opt_level=level, debug_level="0", multi_file=True)
setup(name="yaqd", packages=[], ext_modules=made)
"""


def modules(root: Path) -> Iterator[str]:
    """Yield what is compiled: paths of files below the checkout."""
    named = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["yaqd"]["compiled"]
    left_out = {root / name for name in named["except"]}
    for name in named["modules"]:
        for path in sorted((root / name).rglob("*.py")) if (root / name).is_dir() else [root / name]:
            if path.name != "__init__.py" and not left_out.intersection((path, *path.parents)):
                yield str(path.relative_to(root))


def compile_in(folder: Path) -> list[Path]:
    """Compile in a copy of the checkout's packages; return the extension modules, each beside its source."""
    names = ",".join(modules(folder))
    subprocess.run((sys.executable, "-c", _BUILD, "build_ext", "--inplace", names), cwd=folder, check=True)
    shutil.rmtree(folder / "build")
    return sorted(folder.rglob("*.so"))


class CustomBuildHook(BuildHookInterface[Any]):
    """What hatchling looks for."""

    def dependencies(self) -> list[str]:
        if not self._is_wanted:
            return []
        pins = (Path(self.root) / "constraints.txt").read_text().splitlines()
        return [pin for pin in pins if pin.partition("==")[0] in _COMPILER]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if not self._is_wanted:
            return
        if version == "editable":
            self.app.display_warning("an editable install is not compiled: scripts/compiled.sh runs a compiled copy")
            return
        root, self._work = Path(self.root), Path(tempfile.mkdtemp(prefix="yaqd-compiled-"))
        shutil.copy(root / "pyproject.toml", self._work)
        for package in self.build_config.packages:
            shutil.copytree(root / package, self._work / package, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
        try:
            compiled = compile_in(self._work)
        except BaseException:
            shutil.rmtree(self._work, ignore_errors=True)  # hatchling calls `finalize` after what went well
            raise
        build_data["force_include"] |= {str(path): str(path.relative_to(self._work)) for path in compiled}
        build_data["pure_python"], build_data["infer_tag"] = False, True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if self._is_wanted and version != "editable":
            shutil.rmtree(self._work, ignore_errors=True)

    @property
    def _is_wanted(self) -> bool:
        return os.environ.get("YAQD_COMPILED") == "1"


if __name__ == "__main__":
    compile_in(Path(sys.argv[1]))
