"""Commands that are ended from outside, by SIGTERM or a terminal that closes, leave as much behind as after Ctrl-C."""

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest
from click.testing import CliRunner

from yaqd.cli.applications.following import follow
from yaqd.cli.ended import clears_up
from yaqd.cli.local.processes import processes_working_under
from yaqd.model import ApplicationId

SLEEPS = """\
import os, time
from yaqd.mapreduce import Job


class Sleeps(Job):
    def map(self, key, value):
        yield key, value * 1_000_000
        with open(os.environ["BEGUN"], "w") as file:
            file.write(str(os.getpid()))
        while True:
            time.sleep(0.001)
            with open(f"{os.environ['TMPDIR']}/{time.monotonic_ns()}", "w"):
                pass
"""
ENDINGS = [
    (signal.SIGINT, 130, "yaq: interrupted"),
    (signal.SIGTERM, 143, "yaq: ended by SIGTERM"),
    (signal.SIGHUP, 129, "yaq: ended by SIGHUP"),
]


@pytest.mark.slow
@pytest.mark.parametrize("is_group", [False, True], ids=["it", "group"])
@pytest.mark.parametrize(("number", "code", "said"), ENDINGS, ids=["INT", "TERM", "HUP"])
def test_a_local_job_that_is_ended_leaves_nothing(
    tmp_path: Path, number: signal.Signals, code: int, said: str, is_group: bool
) -> None:
    local, errors = begun(tmp_path)
    os.killpg(local.pid, number) if is_group else local.send_signal(number)
    assert (local.wait(timeout=30), errors.read_text().splitlines()[-1]) == (code, said)
    task = int((tmp_path / "begun").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(task, 0)
    assert [path.name for path in (tmp_path / "tmp").iterdir() if path.name.startswith("yaq-")] == []
    assert not (tmp_path / "out").exists()
    assert processes_working_under(tmp_path) == []


@pytest.mark.slow
def test_a_local_job_outlives_its_terminal_under_nohup(tmp_path: Path) -> None:
    local, _ = begun(tmp_path, "nohup")
    os.killpg(local.pid, signal.SIGHUP)
    before = len(list((tmp_path / "tmp").iterdir()))
    deadline = time.monotonic() + 30
    while len(list((tmp_path / "tmp").iterdir())) < before + 10:  # its task goes on making files
        assert local.poll() is None and time.monotonic() < deadline
    local.terminate()
    assert local.wait(timeout=30) == 143


def as_from_a_terminal() -> None:
    """Whoever runs the tests, by nohup maybe, may ignore these."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


def begun(folder: Path, *before: str) -> tuple["subprocess.Popen[bytes]", Path]:
    """A local job, in a group of its own, whose map is at work; where its errors go."""
    (folder / "job.py").write_text(SLEEPS)
    (folder / "in").write_text("a\n")
    (folder / "tmp").mkdir()
    words = ["mr", "local", "job.py", "--input", "in", "--output", "out", "--quiet", "--reduces", "0"]
    environment = os.environ | {"TMPDIR": str(folder / "tmp"), "BEGUN": str(folder / "begun")}
    with (folder / "errors").open("wb") as errors:
        local = subprocess.Popen(
            [*before, sys.executable, "-m", "yaqd.cli", *words],
            cwd=folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
            preexec_fn=as_from_a_terminal,
        )
    deadline = time.monotonic() + 30
    while not (folder / "begun").exists() or not (folder / "begun").read_text():
        assert local.poll() is None and time.monotonic() < deadline, (folder / "errors").read_text()
        time.sleep(0.02)
    return local, folder / "errors"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_whoever_waits_for_a_job_is_told_that_it_goes_on(number: signal.Signals, code: int) -> None:
    def wait(*words: Any, **options: Any) -> None:
        os.kill(os.getpid(), number)
        time.sleep(10)

    job: Any = SimpleNamespace(application_id=ApplicationId(1, 1), wait=wait, conf=None)

    @click.command()
    @clears_up
    @click.pass_context
    def waits(ctx: click.Context) -> None:
        ctx.exit(follow(job, wait=True, as_json=False, is_quiet=True, is_new=False))

    former = signal.signal(number, signal.SIG_DFL)  # whoever runs the tests may ignore it
    try:
        done = CliRunner().invoke(waits)
    finally:
        signal.signal(number, former)
    application = "application_1_0001"
    assert (done.exit_code, done.stderr) == (
        code,
        f"yaq: {application} goes on; end it with: yaq app kill {application}\n",
    )


@pytest.mark.parametrize("words", [("app", "logs", "application_1_0001", "--follow"), ("top",)], ids=" ".join)
def test_whatever_goes_on_and_on_says_what_ended_it(words: tuple[str, ...]) -> None:
    """It asks somebody who never answers. Its output is a terminal, which gets its old screen back."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(30)
        address = "127.0.0.1:{1}".format(*silent.getsockname())
        terminal, its_end = os.openpty()
        told = [f"-Dyarn.resourcemanager.{name}={address}" for name in ("address", "webapp.address")]
        command = subprocess.Popen(
            [sys.executable, "-m", "yaqd.cli", *words, *told],
            env=os.environ | {"TERM": "xterm"},
            stdout=its_end,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=as_from_a_terminal,
        )
        with command, silent.accept()[0]:
            command.terminate()
            _, errors = command.communicate(timeout=30)
        os.close(its_end)
        shown = all_shown(terminal) if words == ("top",) else b"\x1b[?1049l"
        os.close(terminal)
    assert (command.returncode, errors) == (143, b"yaq: ended by SIGTERM\n")
    assert b"\x1b[?1049l" in shown


def all_shown(terminal: int) -> bytes:
    """What was written to its other end, which nobody has open any more: one read may give the first part alone."""
    shown = b""
    with suppress(OSError):  # EIO: that was all
        while part := os.read(terminal, 1 << 16):
            shown += part
    return shown


def test_a_second_signal_lets_it_clear_up_and_handlers_of_others_stay() -> None:
    seen: list[str] = []
    former = signal.signal(signal.SIGHUP, lambda number, frame: seen.append("own"))

    @click.command()
    @clears_up
    def ends() -> None:
        os.kill(os.getpid(), signal.SIGHUP)
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)
            seen.append("cleared up")

    try:
        done = CliRunner().invoke(ends)
    finally:
        signal.signal(signal.SIGHUP, former)
    assert (done.exit_code, done.stderr, seen) == (143, "yaq: ended by SIGTERM\n", ["own", "cleared up"])
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
