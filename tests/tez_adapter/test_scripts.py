"""Executables as filters: large data both ways, messages on stderr, every way to fail."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tez_adapter.jobspec import JobKind, JobSpec, Streaming
from tez_adapter.streaming.script_command import split_command
from tez_adapter.streaming.script_pipe import ScriptFailed, ScriptPipe
from tez_adapter.streaming.task import script_environment
from tez_adapter.tasks.attempt import TaskAttempt
from tez_adapter.tasks.failure import describe_failure
from yaqd.config import Configuration
from yaqd.mapreduce.errors import JobError
from yaqd.proto import job_pb2 as pb


def make_attempt(**settings: str) -> TaskAttempt:
    spec = JobSpec(
        job_id="job_1_0001",
        name="n",
        user="u",
        kind=JobKind.STREAMING,
        conf=settings,
        staging="file:///tmp/x",
        output="file:///tmp/out",
        reduces=2,
        streaming=Streaming("cat", "cat"),
    )
    description = pb.TaskDescription(
        attempt=pb.AttemptRef(vertex=1, index=3, number=0),
        attempt_id="attempt_1_0001_r_000003_0",
        kind=pb.TaskDescription.REDUCE,
    )
    return TaskAttempt(description, spec, Configuration.load(environ={}, overrides=settings))


def pipe(command: str, attempt: TaskAttempt | None = None) -> ScriptPipe:
    return ScriptPipe("mapper", command, dict(os.environ), attempt or make_attempt())


def run(command: str, *blocks: bytes) -> bytes:
    return b"".join(pipe(command).output(blocks))


def test_megabytes_pass_in_both_directions_at_once() -> None:
    block = bytes(range(256)) * 4096
    assert run("cat", *[block] * 20) == block * 20


LARGE = [b"line\n" * 1000] * 60


@pytest.mark.parametrize("command", ["head -n 1", "true", "sh -c 'head -c 10 > /dev/null; exec sleep 0.2'"])
def test_a_script_that_leaves_much_of_its_input_fails_as_on_hadoop(command: str) -> None:
    with pytest.raises(ScriptFailed, match="stopped reading and left much of its input"):
        run(command, *LARGE)
    tolerant = make_attempt(**{"stream.minRecWrittenToEnableSkip_": "0"})
    assert b"".join(pipe(command, tolerant).output(LARGE)) in (b"line\n", b"")
    strict = make_attempt(**{"stream.minRecWrittenToEnableSkip_": "9"})
    with pytest.raises(ScriptFailed, match="stopped reading"):
        list(pipe(command, strict).output(LARGE))


def test_of_one_that_fails_by_itself_its_own_status_is_told() -> None:
    with pytest.raises(ScriptFailed, match="exited with status 3"):
        run("sh -c 'head -n 1; exit 3'", *LARGE)


def test_what_is_left_of_a_small_input_is_no_failure_as_on_hadoop() -> None:
    assert run("head -n 1", *[b"line\n" * 100] * 20) == b"line\n"
    assert run("true", b"x" * (128 * 1024)) == b""


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("awk -F\\t '{print $1}'", ["awk", "-F\\t", "{print $1}"]),
        ("""printf '%s|%s' "a b" $HOME""", ["printf", "%s|%s", "a b", "$HOME"]),
        ("a'b c'd\"e 'f\" '' g", ["a", "b c", "d", "e 'f", "g"]),
        ("  tab\there \\' open ", ["tab\there", "\\", " open "]),
    ],
)
def test_words_are_split_as_hadoop_splits_them(command: str, words: list[str]) -> None:
    assert split_command(command) == words


def test_a_script_that_was_sent_along_need_not_be_executable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plain.sh").write_text("#!/bin/sh\necho ran\n")
    monkeypatch.chdir(tmp_path)
    assert run("plain.sh") == b"ran\n"


@pytest.mark.parametrize("name", ["plain.sh", "./plain.sh"])
def test_a_script_that_does_not_say_of_what_is_the_shells(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "plain.sh").write_text('for word; do echo "$word"; done\ncat\n')
    monkeypatch.chdir(tmp_path)
    assert run(f"{name} -a 'b c'", b"line\n") == b"-a\nb c\nline\n"


def test_messages_on_stderr_reach_the_job(capfd: pytest.CaptureFixture[str]) -> None:
    attempt = make_attempt()
    script = "printf 'reporter:counter:a,b,2\\nreporter:status:half way\\nreporter:counter:a,b,3\\nhello\\n' >&2"
    assert list(pipe(f'sh -c "{script}"', attempt).output(())) == []
    assert attempt.counters.get("a", "b") == 5
    assert attempt.status == "half way"
    assert capfd.readouterr().err == "hello\n"


@pytest.mark.parametrize("ending", [",", ",,,", ", "])
def test_commas_at_a_counters_end_do_not_count(ending: str) -> None:
    attempt = make_attempt()
    list(pipe(f"sh -c 'echo \"reporter:counter:a,b,2{ending}\" >&2'", attempt).output(()))
    assert attempt.counters.get("a", "b") == 2


@pytest.mark.parametrize(
    "line",
    [
        "reporter:counter:a,b",
        "reporter:counter:a,b,,",
        "reporter:counter:,a,b,1",
        "reporter:counter:a,b, 1",
        "reporter:counter:a,b,--1",
        f"reporter:counter:a,b,{1 << 63}",
    ],
)
def test_what_only_looks_like_a_counter_is_a_line(line: str, capfd: pytest.CaptureFixture[str]) -> None:
    attempt = make_attempt()
    list(pipe(f"sh -c 'echo {line} >&2'", attempt).output(()))
    assert (attempt.counters.get("a", "b"), capfd.readouterr().err) == (0, line + "\n")


def test_sums_of_counters_stay_in_64_bits() -> None:
    attempt = make_attempt()
    script = f"echo reporter:counter:a,b,{(1 << 63) - 1} >&2; echo reporter:counter:a,b,1 >&2"
    list(pipe(f"sh -c '{script}'", attempt).output(()))
    assert attempt.counters.get("a", "b") == -(1 << 63)


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("for i in range(130): print(f'reporter:counter:g,name{i},1', file=sys.stderr)", "more than 120 counters"),
        ("print('reporter:counter:g,,1', file=sys.stderr)", "bad counter name ''"),
        ("print('reporter:counter:' + 'g' * 300 + ',n,1', file=sys.stderr)", "bad counter group name 'ggg"),
        ("sys.stderr.write('reporter:counter:g,' + 'n' * 100_000)", "a message of more than 65536 bytes"),
    ],
)
def test_a_counter_that_cannot_be_fails_the_task_at_once(program: str, expected: str, tmp_path: Path) -> None:
    """Though the script goes on, and what it has started holds its pipes open."""
    script, child = tmp_path / "script.py", tmp_path / "child"
    start = (
        "import pathlib, subprocess, sys, time\nchild = subprocess.Popen(['sleep', '20'])\n"
        f"pathlib.Path({str(child)!r}).write_text(str(child.pid))\n"
    )
    script.write_text(f"{start}{program}\nsys.stderr.flush()\ntime.sleep(20)\n")
    with pytest.raises(JobError, match="the mapper reported") as caught:
        list(pipe(f"python3 {script}").output(iter([b"line\n"] * 1000)))
    os.kill(int(child.read_text()), 9)
    assert expected in str(caught.value)
    assert describe_failure(make_attempt(), caught.value).fatal


def test_a_status_of_any_length_is_cut() -> None:
    attempt = make_attempt()
    program = "import sys; sys.stderr.write('reporter:status:' + 's' * 200_000 + '\\nlast\\n')"
    list(pipe(f'python3 -c "{program}"', attempt).output(()))
    assert attempt.status == "s" * 2000


def test_a_line_on_stderr_that_never_ends_is_passed_on(capfd: pytest.CaptureFixture[str]) -> None:
    program = "import sys; sys.stderr.write('x' * 5_000_000 + '\\nlast\\n'); sys.exit(3)"
    with pytest.raises(ScriptFailed) as caught:
        run(f'python3 -c "{program}"')
    assert capfd.readouterr().err == "x" * 5_000_000 + "\nlast\n"
    assert str(caught.value).endswith("x\nlast") and len(str(caught.value)) < 5000


def test_a_script_may_close_its_stderr() -> None:
    assert run("sh -c 'exec 2>&-; cat'", b"line\n") == b"line\n"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("sh -c 'echo why >&2; exit 3'", "exited with status 3; its last lines on stderr:\nwhy"),
        ("sh -c 'kill -9 $$'", "was ended by signal 9"),
        ("/nowhere/script", "cannot start"),
        ("'unclosed", "cannot start"),
        ("", "cannot start"),
    ],
)
def test_failures_are_told(command: str, expected: str) -> None:
    with pytest.raises(ScriptFailed) as caught:
        run(command, b"x")
    assert expected in str(caught.value)


def test_an_exit_status_may_be_meant_well() -> None:
    attempt = make_attempt(**{"stream.non.zero.exit.is.failure": "false"})
    assert b"".join(pipe("sh -c 'echo fine; exit 1'", attempt).output(())) == b"fine\n"


def test_trouble_with_the_input_ends_the_executable() -> None:
    def blocks() -> Iterator[bytes]:
        yield b"x"
        raise OSError("disk gone")

    with pytest.raises(OSError, match="disk gone"):
        b"".join(pipe("cat").output(blocks()))


def test_an_executable_is_ended_when_nobody_reads_on() -> None:
    running = pipe("sh -c 'echo 1; sleep 1000'")
    output = running.output(())
    assert next(output) == b"1\n"
    output.close()  # type: ignore[attr-defined]
    assert running._process.returncode == -9


def test_the_working_folder_comes_first_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "mine"
    script.write_text("#!/bin/sh\necho from the folder\n")
    script.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    assert run("mine") == b"from the folder\n"


def test_the_configuration_is_in_the_environment() -> None:
    environment = script_environment(make_attempt(**{"my.own-key": "v", "nul": "a\0b"}))
    assert environment["my_own_key"] == "v"
    assert "nul" not in environment
    assert environment["mapreduce_job_maps"] == environment["mapred_map_tasks"] == "2"
    assert environment["mapreduce_output_fileoutputformat_outputdir"] == "file:/tmp/out"
    assert environment["mapreduce_task_attempt_id"] == "attempt_1_0001_r_000003_0"
    folder = "file:/tmp/out/_temporary/job_1_0001/attempt_1_0001_r_000003_0"
    assert environment["mapreduce_task_output_dir"] == environment["mapred_work_output_dir"] == folder
    assert (environment["mapreduce_task_partition"], environment["mapreduce_task_ismap"]) == ("3", "false")


def test_what_a_user_reads_of_a_failure() -> None:
    attempt = make_attempt()
    assert describe_failure(attempt, JobError("bad key")).fatal
    assert describe_failure(attempt, JobError("bad key")).text == (
        "bad key\n  in attempt_1_0001_r_000003_0, partition 3"
    )
    failure = describe_failure(attempt, TypeError("'NoneType' object is not iterable"))
    assert "must yield pairs" in failure.text and not failure.fatal
    failure = describe_failure(attempt, TypeError("'int' object is not iterable"))
    assert failure.text.startswith("map() or reduce() returned a value of type int: it must yield pairs")
    assert "mapreduce.reduce.memory.mb" in describe_failure(attempt, MemoryError()).text
    assert "called exit(3)" in describe_failure(attempt, SystemExit(3)).text


def raised_by(expression: str) -> BaseException:
    """What a line of a job's own file raises."""
    try:
        eval(compile(expression, "/job/script.py", "eval"))
    except Exception as error:
        return error
    raise AssertionError(f"{expression} did not fail")


@pytest.mark.parametrize(
    ("expression", "headline"),
    [
        ("open('/no/such/file')", "FileNotFoundError: [Errno 2] No such file or directory: '/no/such/file'"),
        # not what map() returned
        ("list(None)", "TypeError: 'NoneType' object is not iterable"),
    ],
)
def test_an_error_of_the_jobs_own_lines_names_the_line(expression: str, headline: str) -> None:
    text = describe_failure(make_attempt(), raised_by(expression)).text
    assert text.startswith(headline + "\n")
    assert 'File "/job/script.py", line 1' in text


def test_an_error_of_the_system_is_one_line() -> None:
    text = describe_failure(make_attempt(), OSError(28, "No space left on device")).text
    assert text == "OSError: [Errno 28] No space left on device\n  in attempt_1_0001_r_000003_0, partition 3"
