"""The pinned jars of stock Hadoop and Tez: fetched once through Maven, checked, kept outside the checkout.

Maven resolves a `pom.xml` from Maven Central and resumes what a cut-off run left in its local repository; `jars.sha256`
beside it names every jar with its digest, so that a run never uses anything else. Tarball releases are not used:
they carry half a gigabyte of documentation and are not on Maven Central.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HADOOP_VERSION = "3.4.2"
TEZ_VERSION = "0.10.5"
_HERE = Path(__file__).parent
_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1"
_FETCH_TIMEOUT_S = 900.0


class StockUnavailable(Exception):
    """The stock side cannot run on this machine; the message says what is missing and how to get it."""


@dataclass(frozen=True, slots=True)
class HadoopJars:
    """A checked set of jars and the Java that runs them."""

    directory: Path
    java: Path

    def jar(self, artifact: str) -> Path:
        """The jar of one Hadoop artifact, e.g. `hadoop-mapreduce-examples`."""
        return self.directory / f"{artifact}-{HADOOP_VERSION}.jar"

    @property
    def java_home(self) -> Path:
        return self.java.resolve().parent.parent


def cache_root() -> Path:
    """Where fetched and generated files are kept between runs."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "yaqd"


def find_java() -> Path:
    """The `java` to use: JAVA_HOME's, else the one on PATH; refuses anything but Java 11 to 22."""
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if not found or not Path(found).exists():
        raise StockUnavailable("stock Hadoop needs Java: install openjdk-17-jre-headless or set JAVA_HOME")
    text = subprocess.run([found, "-version"], capture_output=True, text=True, timeout=30, check=False).stderr
    major = text.partition('version "')[2].partition('"')[0].partition(".")[0]
    # Java 23 drops the Subject look-up that Hadoop's user information relies on.
    if not major.isdigit() or not 11 <= int(major) <= 22:
        raise StockUnavailable(f"stock Hadoop {HADOOP_VERSION} runs on Java 11 to 22; {found} is {major or 'unknown'}")
    return Path(found)


def fetch() -> HadoopJars:
    """The checked jars, fetched first if they are not in the cache; safe to call from several processes at once."""
    java = find_java()
    return HadoopJars(_fetched(f"hadoop-{HADOOP_VERSION}", _HERE), java)


def fetch_tez() -> Path:
    """The folder of the checked jars of Tez, which run with those of Hadoop; likewise."""
    return _fetched(f"tez-{TEZ_VERSION}", _HERE / "tez")


def fetch_sleep() -> Path:
    """The folder of the checked jar of MapReduce's SleepJob; likewise."""
    return _fetched(f"hadoop-sleep-{HADOOP_VERSION}", _HERE / "sleep")


def _fetched(name: str, recipe: Path) -> Path:
    """`recipe` is the folder of the pom and the digests."""
    root = cache_root() / name
    pinned = _pinned(recipe)
    # Each set has a folder of its own: checkouts that pin different ones must not take each other's away.
    jars = root / f"jars-{_stamp(pinned)[:12]}"
    root.mkdir(parents=True, exist_ok=True)
    with locked(root / "lock"):
        if not jars.is_dir():  # whole or not there
            _fetch_into(root, jars, recipe)
    return jars


def _fetch_into(root: Path, jars: Path, recipe: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise StockUnavailable("fetching stock Hadoop needs Maven: install the package maven")
    staging = Path(tempfile.mkdtemp(prefix="fetching-", dir=root))
    try:
        command = [
            *(maven, "-q", "-B", "-f", str(recipe / "pom.xml"), f"{_PLUGIN}:copy-dependencies"),
            *(f"-DoutputDirectory={staging}", "-DincludeScope=runtime"),
        ]
        run = subprocess.run(command, capture_output=True, text=True, timeout=_FETCH_TIMEOUT_S, check=False)
        if run.returncode != 0:
            lines = [line for line in (run.stdout + run.stderr).splitlines() if "ERROR" in line]
            why = lines[0] if lines else "no reason given"
            raise StockUnavailable(f"Maven could not fetch {root.name}: {why}")
        _check(staging, recipe)
        staging.rename(jars)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _check(directory: Path, recipe: Path) -> None:
    pinned = _pinned(recipe)
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(directory.iterdir())}
    for name in sorted(found.keys() | pinned.keys()):
        if found.get(name) != pinned.get(name):
            problem = "is missing" if name not in found else "is not pinned" if name not in pinned else "has changed"
            raise StockUnavailable(f"{name} {problem}: Maven's answer does not match {recipe / 'jars.sha256'}")


def _pinned(recipe: Path) -> dict[str, str]:
    lines = (recipe / "jars.sha256").read_text().splitlines()
    return {name: digest for digest, name in (line.split() for line in lines)}


def _stamp(pinned: dict[str, str]) -> str:
    return hashlib.sha256(repr(sorted(pinned.items())).encode()).hexdigest()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
