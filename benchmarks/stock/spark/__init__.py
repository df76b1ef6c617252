"""Stock Spark, from its pinned Python package: fetched once through pip, kept outside the checkout."""

import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.stock.artifacts import StockUnavailable, cache_root, find_java, locked

_REQUIREMENTS = Path(__file__).parent / "requirements.txt"
_FETCH_TIMEOUT_S = 900.0


def fetch_spark() -> Path:
    """The folder that holds the packages; fetched first if it is not there, 300 MB. Needs a Java."""
    find_java()
    root = cache_root() / "spark"
    root.mkdir(parents=True, exist_ok=True)
    packages = root / hashlib.sha256(_REQUIREMENTS.read_bytes()).hexdigest()[:12]
    with locked(root / "lock"):
        if not packages.is_dir():  # whole or not there
            _fetch_into(packages)
    return packages


def _fetch_into(packages: Path) -> None:
    staging = Path(tempfile.mkdtemp(prefix="fetching-", dir=packages.parent))
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    command = [*pip, "--no-deps", "--require-hashes", "--target", str(staging), "-r", str(_REQUIREMENTS)]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=_FETCH_TIMEOUT_S, check=False)
        if run.returncode != 0:
            raise StockUnavailable(f"pip could not fetch Spark: {run.stderr.strip()[-500:]}")
        staging.rename(packages)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
