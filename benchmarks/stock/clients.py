"""Stock client programs: each run is the command a user would type, timed from its start to its exit."""

import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .artifacts import HadoopJars
from .processes import CLIENT_JVM, java_command, java_environment

_RUN_JAR = "org.apache.hadoop.util.RunJar"
_CLI = "org.apache.hadoop.yarn.client.cli"
#: The `yarn` command's words and the class behind each.
YARN_COMMANDS = {
    "application": (f"{_CLI}.ApplicationCLI", ["application"]),
    "applicationattempt": (f"{_CLI}.ApplicationCLI", ["applicationattempt"]),
    "container": (f"{_CLI}.ApplicationCLI", ["container"]),
    "node": (f"{_CLI}.NodeCLI", []),
    "queue": (f"{_CLI}.QueueCLI", []),
    "logs": (f"{_CLI}.LogsCLI", []),
    "top": (f"{_CLI}.TopCLI", []),
    "cluster": (f"{_CLI}.ClusterCLI", []),
    "rmadmin": (f"{_CLI}.RMAdminCLI", []),
}


@dataclass(frozen=True, slots=True)
class ClientRun:
    """What one client command did."""

    command: str
    exit_code: int
    stdout: str
    stderr: str
    seconds: float

    def checked(self) -> "ClientRun":
        """Itself; raises with the command's own output where it failed."""
        if self.exit_code != 0:
            raise ClientFailure(f"{self.command} exited with {self.exit_code}\n{(self.stdout + self.stderr)[-6000:]}")
        return self


class ClientFailure(Exception):
    """A stock client command failed; the message carries its output."""


class StockClients:
    """Runs stock programs against whichever cluster `conf_dir` describes, stock or ours."""

    def __init__(
        self,
        jars: HadoopJars,
        conf_dir: Path,
        *,
        user: str | None = None,
        environment: Mapping[str, str] = {},
        timeout_s: float = 300.0,
        more: Sequence[Path] = (),
    ) -> None:
        """`environment` is added to that of each program, the jars of the folders `more` to its classes."""
        self.jars = jars
        self._environment = dict(environment)
        self.conf_dir = conf_dir
        self._user = user
        self._timeout_s = timeout_s
        self._more = more

    def run(
        self, main: str, args: Sequence[str], *, name: str = "", stdin: str = "", cwd: Path | None = None
    ) -> ClientRun:
        """Runs one Hadoop class, in the folder `cwd`."""
        command = java_command(self.jars, self.conf_dir, CLIENT_JVM, main, args, more=self._more)
        label = name or " ".join((main.rpartition(".")[2], *args))
        return self.execute(command, label, stdin=stdin, cwd=cwd)

    def execute(self, command: Sequence[str], label: str, *, stdin: str = "", cwd: Path | None = None) -> ClientRun:
        """Runs any program as a client of the cluster."""
        environment = java_environment(self.jars, self.conf_dir, self._user) | self._environment
        started = time.perf_counter()
        try:
            done = subprocess.run(
                command,
                env=environment,
                input=stdin,
                cwd=cwd,
                capture_output=True,
                text=True,
                timeout=self._timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired as late:
            said = b"".join(part for part in (late.stdout, late.stderr) if isinstance(part, bytes))
            raise ClientFailure(
                f"{label} did not end within {self._timeout_s:.0f} s\n{said.decode(errors='replace')[-6000:]}"
            ) from None
        seconds = time.perf_counter() - started
        return ClientRun(label, done.returncode, done.stdout, done.stderr, seconds)

    def fs(self, *args: str) -> ClientRun:
        """`hadoop fs ARGS`."""
        return self.run("org.apache.hadoop.fs.FsShell", args, name=f"hadoop fs {' '.join(args)}")

    def dfsadmin(self, *args: str) -> ClientRun:
        """`hdfs dfsadmin ARGS`."""
        return self.run("org.apache.hadoop.hdfs.tools.DFSAdmin", args, name=f"hdfs dfsadmin {' '.join(args)}")

    def example(self, program: str, *args: str) -> ClientRun:
        """`hadoop jar hadoop-mapreduce-examples.jar PROGRAM ARGS`."""
        jar = str(self.jars.jar("hadoop-mapreduce-examples"))
        return self.run(_RUN_JAR, [jar, program, *args], name=f"example {program}")

    def streaming(self, *args: str) -> ClientRun:
        """`mapred streaming ARGS`."""
        jar = str(self.jars.jar("hadoop-streaming"))
        return self.run(_RUN_JAR, [jar, *args], name="streaming")

    def mapred_job(self, *args: str) -> ClientRun:
        """`mapred job ARGS`."""
        return self.run("org.apache.hadoop.mapred.JobClient", args, name=f"mapred job {' '.join(args)}")

    def mapred_queue(self, *args: str) -> ClientRun:
        """`mapred queue ARGS`."""
        return self.run("org.apache.hadoop.mapred.JobQueueClient", args, name=f"mapred queue {' '.join(args)}")

    def distributed_shell(self, *args: str) -> ClientRun:
        """The distributed shell example with its own jar."""
        jar = str(self.jars.jar("hadoop-yarn-applications-distributedshell"))
        main = "org.apache.hadoop.yarn.applications.distributedshell.Client"
        return self.run(main, ["-jar", jar, *args], name="distributed shell")

    def unmanaged_master(self, command: str, cwd: Path) -> ClientRun:
        """`hadoop jar hadoop-yarn-applications-unmanaged-am-launcher.jar Client -cmd COMMAND`, words between blanks."""
        main = "org.apache.hadoop.yarn.applications.unmanagedamlauncher.UnmanagedAMLauncher"
        return self.run(main, ["-cmd", command], name="unmanaged master", cwd=cwd)

    def yarn(self, command: str, *args: str, stdin: str = "") -> ClientRun:
        """`yarn COMMAND ARGS`."""
        main, prefix = YARN_COMMANDS[command]
        return self.run(main, [*prefix, *args], name=f"yarn {command} {' '.join(args)}", stdin=stdin)
