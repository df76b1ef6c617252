"""`yaq demo`: the whole thing on one screen: a cluster, a real job on real text, the proof that its answer is right.

Everything lies under one temporary folder. Whatever happens, Ctrl-C included, the cluster is stopped and the folder
removed; where the demonstration fails the folder stays, because the reason is in its logs.
"""

import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from yaqd.cli.ended import clears_up
from yaqd.cli.exits import FAILED, CommandError
from yaqd.cli.local import LocalCluster
from yaqd.cli.options import json_option
from yaqd.cli.output import duration, print_json, print_table, size

if TYPE_CHECKING:
    from tez_adapter.client.follow import JobResult

MB = 1 << 20
NODES = 3
REDUCES = 2
SPLIT_BYTES = 8 * MB
DEFAULT_INPUT_MB = 64
#: Free space that the demo wants: output, spills and logs are smaller than the input.
_SPACE_SHARE = 2
_SPACE_MIN_BYTES = 256 * MB
_Value = TypeVar("_Value")


@click.command("demo")
@click.option("--input", "source", type=click.Path(path_type=Path), help="A file or folder to count the words of.")
@click.option("--size", "input_mb", type=int, default=DEFAULT_INPUT_MB, show_default=True, metavar="MB",
              help="How much of the machine's own text to count, without --input.")  # fmt: skip
@click.option("--nodes", type=click.IntRange(1, 16), default=NODES, show_default=True, help="NodeManagers to start.")
@click.option("--top", type=click.IntRange(0), default=10, show_default=True, help="How many words to show.")
@click.option("--keep", is_flag=True, help="Stop the cluster at the end, but keep its folder with the logs.")
@json_option
@click.pass_context
@clears_up
def demo(
    ctx: click.Context, source: Path | None, input_mb: int, nodes: int, top: int, keep: bool, as_json: bool
) -> None:
    """Start a cluster, count words on it, show what happened, check the counts, clean up.

    Without --input it counts the Python library and the installed packages of this machine.

    \b
    Example:
      yaq demo --input /usr/share/common-licenses
    """
    with demo_folder(keep) as folder:
        run = DemoRun(folder, quiet=as_json)
        try:
            is_right = run.whole(source, input_mb * MB, nodes, top)
        finally:
            run.stop()
        if as_json:
            print_json(run.story)
        elif keep:
            click.echo(f"kept: {folder} (logs in {run.cluster.logs_dir} and {folder}/cluster/nodes)")
        else:
            click.echo("cluster stopped, nothing left behind (--keep keeps the logs)")
    ctx.exit(0 if is_right else FAILED)


class DemoRun:
    """One demonstration; `story` is what --json prints."""

    def __init__(self, folder: Path, *, quiet: bool) -> None:
        self.folder = folder
        self.cluster = LocalCluster(folder / "cluster")
        self.story: dict[str, Any] = {"times_ms": {}}
        self._is_quiet = quiet

    def whole(self, source: Path | None, bytes_max: int, nodes: int, top: int) -> bool:
        """Run the demo. Returns whether the cluster's counts are those of the plain count."""
        files = self._timed("find text", lambda: input_files(source, bytes_max))
        total = sum(file.stat().st_size for file in files)
        self.story["input"] = {"files": len(files), "bytes": total}
        self._require_space(total)
        origin = source or "the Python library and the packages on this machine"
        self._say(f"input: {size(total)} of text in {len(files)} files, {origin}")
        self._timed("start cluster", lambda: self.cluster.start(nodes))
        ready_ms = self.story["times_ms"]["start cluster"]
        self._say(f"cluster: 1 ResourceManager, {nodes} NodeManagers, ready in {duration(ready_ms)}")
        result, details = self._timed("count on the cluster", lambda: self._run_job(files))
        if not result.succeeded:
            raise CommandError(f"{result.application_id} {result.state}: {result.diagnostics}", FAILED)
        counted = self._timed("read result", lambda: _counts(self.folder / "output"))
        self._show(counted, details, top)
        return self._check(counted, files)

    def stop(self) -> None:
        """Stops the cluster if it was started. A second Ctrl-C does not interrupt this."""
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            if self.cluster.directory.exists():
                self.cluster.stop()
        except CommandError:
            pass  # it never came so far as to have a cluster
        finally:
            signal.signal(signal.SIGINT, before)

    def _run_job(self, files: Sequence[Path]) -> "tuple[JobResult, dict[str, Any]]":
        from tez_adapter.client.submit import submit_mapreduce
        from yaqd.cli.applications.following import wait_with_progress
        from yaqd.cli.applications.job_details import job_details
        from yaqd.config import Configuration

        settings = {"mapreduce.input.fileinputformat.split.maxsize": str(SPLIT_BYTES)}
        conf = Configuration.load(self.cluster.conf_dir, overrides=settings)
        job = submit_mapreduce(
            conf,
            str(example("wordcount.py")),
            inputs=[str(file) for file in files],
            output=str(self.folder / "output"),
            reduces=REDUCES,
        )
        try:
            self._say(f"job: {job.application_id}, word count in Python, {REDUCES} reduces")
            result = wait_with_progress(job, is_quiet=self._is_quiet)
            return result, job_details(conf, job.report())
        finally:
            job.close()

    def _show(self, counted: "Counter[str]", details: dict[str, Any], top: int) -> None:
        from yaqd.cli.applications.job_details import show_job_details

        words = counted.most_common(top)
        self.story |= {"top": dict(words), "job": details, "logs": str(self.cluster.logs_dir)}
        if self._is_quiet:
            return
        click.echo()
        print_table(("word", "count"), [(word, count) for word, count in words], empty="no words at all")
        show_job_details(details)
        click.echo()
        click.echo(f"logs: daemons {self.cluster.logs_dir}, containers {self.cluster.directory}/nodes/*/logs")

    def _check(self, counted: "Counter[str]", files: Sequence[Path]) -> bool:
        from yaqd.cli.jobs.demo_text import count_words, differences

        expected = self._timed("plain count in one process", lambda: count_words(files))
        wrong = differences(counted, expected)
        self.story["check"] = {"right": not wrong, "words": sum(expected.values()), "distinct": len(expected)}
        self._say("")
        rows = [(what, duration(spent)) for what, spent in self.story["times_ms"].items()]
        if not self._is_quiet:
            print_table(("step", "took"), rows, empty="")
        if wrong:
            self._say("WRONG: the cluster's counts differ from a plain count:\n  " + "\n  ".join(wrong))
        else:
            totals = f"{sum(expected.values()):,} words, {len(expected):,} different"
            self._say(f"check: {totals}: the same as a plain count in one process")
        return not wrong

    def _require_space(self, input_bytes: int) -> None:
        wanted = max(_SPACE_MIN_BYTES, input_bytes * _SPACE_SHARE)
        free = shutil.disk_usage(self.folder).free
        if free < wanted:
            raise CommandError(f"{self.folder.parent} has {size(free)} free, {size(wanted)} are needed; set TMPDIR")

    def _timed(self, what: str, action: Callable[[], _Value]) -> _Value:
        began = time.monotonic()
        value = action()
        self.story["times_ms"][what] = round((time.monotonic() - began) * 1000)
        return value

    def _say(self, text: str) -> None:
        if not self._is_quiet:
            click.echo(text)


def input_files(source: Path | None, bytes_max: int) -> list[Path]:
    """List the files to count: those of `source`, hidden ones left out, or the machine's own text."""
    from yaqd.cli.jobs.demo_text import library_texts

    if bytes_max <= 0:
        raise CommandError("--size: give a number of megabytes from 1")
    if source is None:
        files = library_texts(bytes_max)
        if not files:
            raise CommandError("no text found on this machine; give some with --input")
        return files
    if source.is_file():
        return [source.resolve()]
    if not source.is_dir():
        raise CommandError(f"--input {source}: no such file or folder")
    files = sorted(
        file
        for file in source.resolve().rglob("*")
        if file.is_file() and not any(part[0] in "._" for part in file.relative_to(source.resolve()).parts)
    )
    if not files:
        raise CommandError(f"--input {source}: no files in this folder")
    return files


def example(name: str) -> Path:
    """Find an example script: beside the package in a checkout, inside it in an installed wheel."""
    here = Path(__file__).resolve().parents[1]
    return next(file for file in (here / "examples" / name, here.parents[1] / "examples" / name) if file.exists())


def _counts(output: Path) -> "Counter[str]":
    from yaqd.cli.jobs.demo_text import read_counts

    return read_counts(output)


@contextmanager
def demo_folder(keep: bool) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="yaq-demo-"))
    try:
        yield folder
    except CommandError as error:
        if error.exit_code != FAILED:
            raise
        keep = True
        raise CommandError(f"{error}\n  kept, for what its logs tell: {folder}/cluster", FAILED) from None
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
