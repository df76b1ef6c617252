"""Java processes of stock Hadoop: started, awaited by what they answer, stopped, and never left behind."""

import ctypes
import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from .artifacts import HadoopJars

#: Hadoop 3.4 is made for Java 8 and 11; on 17 its reflection needs these packages opened.
_OPENED = [
    "java.lang",
    "java.lang.invoke",
    "java.lang.reflect",
    "java.io",
    "java.math",
    "java.net",
    "java.nio",
    "java.text",
    "java.util",
    "java.util.concurrent",
    "java.util.concurrent.atomic",
    "java.util.zip",
    "java.util.regex",
    "sun.nio.ch",
    "sun.nio.cs",
    "sun.net.dns",
    "sun.net.util",
    "sun.security.action",
    "sun.security.util",
    "sun.security.x509",
    "sun.util.calendar",
]
OPENINGS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
    "--add-exports=java.base/sun.net.dns=ALL-UNNAMED",
    "--add-exports=java.base/sun.net.util=ALL-UNNAMED",
)
#: Small heaps and the quick compiler alone: daemons and command-line clients start sooner and stay small.
#: Tasks and application masters are not started with these.
DAEMON_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx512m")
CLIENT_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx512m")
#: A NodeManager waits longer for its containers; they are ended with it instead.
_STOP_TIMEOUT_S = 2.0
_POLL_S = 0.05
#: Says where Hadoop logs: standard error.
LOGGING = Path(__file__).parent / "classpath"
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)


class StockFailure(Exception):
    """A stock process ended, or did not answer in time; the message ends with the tail of its log."""


def free_ports(count: int) -> list[int]:
    """Distinct free ports below the range that the kernel hands to clients, so that none is taken in between."""
    ports: list[int] = []
    held: list[socket.socket] = []
    chooser = random.SystemRandom()
    while len(ports) < count:
        port = chooser.randrange(15000, 32000)
        probe = socket.socket()
        held.append(probe)
        try:
            probe.bind(("0.0.0.0", port))
        except OSError:
            continue
        if port not in ports:
            ports.append(port)
    for probe in held:
        probe.close()
    return ports


def java_command(
    jars: HadoopJars, conf_dir: Path, jvm: Sequence[str], main: str, args: Sequence[str], *, more: Sequence[Path] = ()
) -> list[str]:
    """The command line of one class of Hadoop's, or of what lies in the folders `more`."""
    return [str(jars.java), *jvm, *OPENINGS, "-cp", class_path(jars, conf_dir, more), main, *args]


def class_path(jars: HadoopJars, conf_dir: Path, more: Sequence[Path] = ()) -> str:
    """The configuration folder comes first, Hadoop's own jars last."""
    return ":".join((str(conf_dir), str(LOGGING), *(f"{folder}/*" for folder in (*more, jars.directory))))


def java_environment(jars: HadoopJars, conf_dir: Path, user: str | None = None) -> dict[str, str]:
    """This process's environment with what Hadoop reads from it."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("HADOOP_", "YARN_"))}
    environment |= {"HADOOP_CONF_DIR": str(conf_dir), "JAVA_HOME": str(jars.java_home)}
    if user is not None:
        environment["HADOOP_USER_NAME"] = user
    return environment


class Daemon:
    """One stock daemon as a child process; `log` holds its standard output and error."""

    def __init__(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], log: Path, *, survives: bool = False
    ) -> None:
        """Starts it; unless `survives`, it is killed with the thread that started it."""
        self.name = name
        self.log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as stream:
            self._process = subprocess.Popen(
                command,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                cwd=log.parent,
                start_new_session=True,
                preexec_fn=None if survives else _die_with_parent,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def check_alive(self) -> None:
        """Raises with the end of its log if it has ended."""
        if self._process.poll() is not None:
            raise StockFailure(f"{self.name} exited with {self._process.returncode}\n{tail(self.log)}")

    def await_ready(self, ready: Callable[[], bool], timeout_s: float) -> None:
        """Waits until `ready()` is true; a refused connection counts as not yet."""
        deadline = time.monotonic() + timeout_s
        while True:
            self.check_alive()
            try:
                if ready():
                    return
            except OSError:
                pass
            if time.monotonic() > deadline:
                raise StockFailure(f"{self.name} was not ready after {timeout_s:.0f} s\n{tail(self.log)}")
            time.sleep(_POLL_S)

    def terminate(self) -> None:
        """Asks it to end, without waiting."""
        if self._process.poll() is None:
            self._process.terminate()

    def kill(self) -> None:
        """SIGKILL, as when the machine goes down."""
        self._process.kill()
        self._process.wait(_STOP_TIMEOUT_S)

    def stop(self) -> None:
        """SIGTERM, and SIGKILL to what is left of its process group."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(_STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                pass
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.wait(_STOP_TIMEOUT_S)


def accepts(host: str, port: int) -> bool:
    """Whether something listens there."""
    with socket.create_connection((host, port), timeout=1.0):
        return True


def end_processes_under(directory: Path) -> None:
    """Kills processes whose working directory lies in `directory`: containers that outlived their NodeManager."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            cwd = (entry / "cwd").readlink()
            if cwd.is_relative_to(directory.resolve()):
                os.kill(int(entry.name), signal.SIGKILL)
        except OSError:
            continue


def tail(path: Path, lines: int = 30) -> str:
    """The last lines of a log, for messages."""
    return "\n".join(path.read_text(errors="replace").splitlines()[-lines:]) if path.exists() else "(no log)"


def _die_with_parent() -> None:
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
