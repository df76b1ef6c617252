"""Codecs, writers and the committer."""

import gzip
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from yaqd.config import Configuration
from yaqd.storage import (
    NotAFile,
    OutputCommitter,
    PathDenied,
    PathExists,
    check_output_possible,
    get_filesystem,
    open_writer,
    output_suffix,
    part_name,
)

CONF = Configuration.load(environ={})


def test_text_and_raw_output(tmp_path: Path) -> None:
    filesystem = get_filesystem("/", CONF)
    for kind, wanted in (("text", b"a\t1\n\xff\t\n2\tx\n"), ("raw", b"a1\xff2x")):
        path = str(tmp_path / kind)
        writer = open_writer(filesystem, path, kind, CONF)
        writer.write("a", 1)
        writer.write_all([(b"\xff", ""), (2, "x")])
        assert not Path(path).exists()
        writer.close()
        assert Path(path).read_bytes() == wanted
        assert (writer.records, writer.bytes_written) == (3, len(wanted))


def test_separator_and_compression(tmp_path: Path) -> None:
    conf = CONF.with_overrides(
        {"mapreduce.output.textoutputformat.separator": ",", "mapreduce.output.fileoutputformat.compress": "true"}
    )
    path = str(tmp_path / part_name("reduce", 3, output_suffix(conf)))
    assert path.endswith("part-r-00003.gz")
    writer = open_writer(get_filesystem("/", conf), path, "text", conf)
    key = "k" * 999
    writer.write_all((key, number) for number in range(3000))
    writer.close()
    wanted = "".join(f"{key},{number}\n" for number in range(3000))
    assert gzip.decompress(Path(path).read_bytes()).decode() == wanted


def test_an_aborted_writer_leaves_nothing(tmp_path: Path) -> None:
    writer = open_writer(get_filesystem("/", CONF), str(tmp_path / "f"), "text", CONF)
    writer.write("a", "x" * 2_000_000)
    writer.abort()
    assert list(tmp_path.iterdir()) == []


def committer(tmp_path: Path, job: str = "job_1_0001") -> OutputCommitter:
    return OutputCommitter(get_filesystem("/", CONF), f"file://{tmp_path}/out", job)


def put(path: str, data: str) -> None:
    place = Path(path.removeprefix("file://"))
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(data)


def outputs(tmp_path: Path) -> dict[str, str]:
    root = tmp_path / "out"
    return {str(path.relative_to(root)): path.read_text() for path in sorted(root.rglob("*")) if path.is_file()}


def test_output_becomes_visible_task_by_task_and_success_last(tmp_path: Path) -> None:
    job = committer(tmp_path)
    job.setup_job()
    put(job.task_path("attempt_0", "part-r-00000"), "zero")
    put(job.task_path("attempt_0", "side/extra"), "more")
    put(job.task_path("attempt_0", ".part.tmp"), "unfinished")
    put(job.task_path("attempt_1", "part-r-00001"), "one")
    final = [f"file://{tmp_path}/out/part-r-00000", f"file://{tmp_path}/out/side/extra"]
    assert job.commit_task("attempt_0") == final
    job.abort_task("attempt_1")
    job.commit_job()
    assert outputs(tmp_path) == {"_SUCCESS": "", "part-r-00000": "zero", "side/extra": "more"}


def test_committing_again_changes_nothing(tmp_path: Path) -> None:
    job = committer(tmp_path)
    job.setup_job()
    put(job.task_path("a_0", "part-r-00000"), "first")
    job.commit_task("a_0")
    assert job.commit_task("a_0") == []
    put(job.task_path("a_1", "part-r-00000"), "first")  # the retry of a task whose answer was lost
    job.commit_task("a_1")
    assert job.commit_task("never_wrote") == []
    job.commit_job()
    job.commit_job()
    assert outputs(tmp_path) == {"_SUCCESS": "", "part-r-00000": "first"}


def test_anothers_output_is_refused_and_left_alone(tmp_path: Path) -> None:
    job = committer(tmp_path)
    job.setup_job()
    job.setup_job()  # a job manager that starts again
    with pytest.raises(PathExists, match=r"output file://.*/out exists already: delete it"):
        committer(tmp_path, "job_1_0002").setup_job()
    committer(tmp_path, "job_1_0002").abort_job()
    assert (tmp_path / "out" / "_temporary").is_dir()
    job.abort_job()
    assert not (tmp_path / "out").exists()
    (tmp_path / "out").mkdir()
    job.abort_job()
    assert (tmp_path / "out").is_dir()


def as_nobody(work: Callable[[], object]) -> str:
    """What a process that is not root raises; root itself may write anywhere."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            if os.geteuid() == 0:
                os.setuid(65534)
            work()
        except BaseException as error:
            os.write(writer, f"{type(error).__name__}: {error}".encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as said:
        text = said.read()
    os.waitpid(child, 0)
    return text


def test_where_an_output_cannot_be_made_is_said_before_anything_starts() -> None:
    files = get_filesystem("/", CONF)
    with tempfile.TemporaryDirectory() as base:  # pytest's own folders are closed to others
        free, closed = Path(base) / "free", Path(base) / "closed"
        for folder, mode in ((Path(base), 0o755), (free, 0o777), (closed, 0o555)):
            folder.mkdir(exist_ok=True)
            folder.chmod(mode)
        assert as_nobody(lambda: check_output_possible(files, f"{free}/a/b/out")) == ""
        said = as_nobody(lambda: check_output_possible(files, f"{closed}/a/out"))
        assert said == f"PathDenied: {closed}: no permission to write there: check its owner and mode"
        assert [*closed.iterdir(), *free.iterdir()] == []
        (free / "file").write_text("")
        with pytest.raises(NotAFile, match="/file is a file: no folder can be made below it"):
            check_output_possible(files, f"{free}/file/out")
    with pytest.raises(PathDenied, match=r"^/proc: nobody can make a folder there: name another one"):
        check_output_possible(files, "/proc/out")


def test_success_can_be_switched_off(tmp_path: Path) -> None:
    job = OutputCommitter(get_filesystem("/", CONF), str(tmp_path / "out"), "job_1_1", marks_success=False)
    job.setup_job()
    job.commit_job()
    assert list((tmp_path / "out").iterdir()) == []


class CommitMachine(RuleBasedStateMachine):
    """Attempts write, commit, commit again and abort in any order; whatever was committed stays visible and whole."""

    def __init__(self) -> None:
        super().__init__()
        import tempfile

        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(self.folder.name)
        self.job = committer(self.root)
        self.job.setup_job()
        self.written: set[tuple[int, int]] = set()
        self.committed: set[int] = set()
        self.is_done = False

    @precondition(lambda self: not self.is_done)
    @rule(task=st.integers(0, 2), attempt=st.integers(0, 1))
    def write(self, task: int, attempt: int) -> None:
        put(self.job.task_path(f"a_{task}_{attempt}", part_name("r", task)), f"result {task}")
        self.written.add((task, attempt))

    @rule(task=st.integers(0, 2), attempt=st.integers(0, 1))
    def commit(self, task: int, attempt: int) -> None:
        self.job.commit_task(f"a_{task}_{attempt}")
        if (task, attempt) in self.written:
            self.written.discard((task, attempt))
            self.committed.add(task)

    @rule(task=st.integers(0, 2), attempt=st.integers(0, 1))
    def abort(self, task: int, attempt: int) -> None:
        self.job.abort_task(f"a_{task}_{attempt}")
        self.written.discard((task, attempt))

    @rule()
    def finish(self) -> None:
        self.job.commit_job()
        self.written.clear()
        self.is_done = True

    @invariant()
    def what_is_committed_is_visible(self) -> None:
        visible = {name: text for name, text in outputs(self.root).items() if not name.startswith("_temporary")}
        wanted = {part_name("r", task): f"result {task}" for task in self.committed}
        assert visible == wanted | ({"_SUCCESS": ""} if self.is_done else {})

    def teardown(self) -> None:
        self.folder.cleanup()


TestCommitMachine = CommitMachine.TestCase
TestCommitMachine.settings = settings(max_examples=25, stateful_step_count=12, deadline=None)
