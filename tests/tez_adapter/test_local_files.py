"""What travels with a job is found by a run in this process as a container finds it."""

import os
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tez_adapter.client.local import run_local
from tez_adapter.client.local_files import laid_out
from tez_adapter.client.staging import SubmitError
from tez_adapter.client.submit import Attachments
from yaqd.config import Configuration
from yaqd.mapreduce import Job

CONF = Configuration.load(environ={})


class ReadsItsFiles(Job):
    reduces = 0

    def map(self, key: int, value: str) -> Iterator[tuple[str, str]]:
        for name in ("side", "zipped.zip/run.sh", "tarred/d/f.txt", "plain.dat"):
            yield name, Path(name).read_text()
        yield "runs", str(os.access("zipped.zip/run.sh", os.X_OK))


@pytest.fixture
def travelling(tmp_path: Path) -> Attachments:
    (tmp_path / "d").mkdir()
    (tmp_path / "d/f.txt").write_text("from tar")
    with tarfile.open(tmp_path / "t.tgz", "w:gz") as tar:
        tar.add(tmp_path / "d/f.txt", "d/f.txt")
    entry = zipfile.ZipInfo("run.sh")
    entry.external_attr = 0o755 << 16
    with zipfile.ZipFile(tmp_path / "zipped.zip", "w") as archive:
        archive.writestr(entry, "from zip")
    (tmp_path / "side.txt").write_text("from file")
    (tmp_path / "plain.dat").write_text("no archive")
    archives = [f"{tmp_path}/t.tgz#tarred", f"file://{tmp_path}/zipped.zip", f"{tmp_path}/plain.dat"]
    return Attachments(files=[f"{tmp_path}/side.txt#side"], archives=archives)


def test_a_job_in_this_process_finds_its_files(
    tmp_path: Path, travelling: Attachments, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in.txt").write_text("x\n")
    run_local(ReadsItsFiles, ["in.txt"], "out", CONF, attachments=travelling)
    lines = dict(line.split("\t") for line in Path("out/part-m-00000").read_text().splitlines())
    assert lines == {
        "side": "from file",
        "zipped.zip/run.sh": "from zip",
        "tarred/d/f.txt": "from tar",
        "plain.dat": "no archive",
        "runs": "True",
    }
    assert Path.cwd() == tmp_path


def test_the_folder_is_gone_afterwards_and_the_files_stand(tmp_path: Path, travelling: Attachments) -> None:
    with pytest.raises(KeyError), laid_out(travelling, CONF) as folder:
        assert folder is not None and folder.is_dir()
        raise KeyError
    assert folder is not None and not folder.exists()
    assert (tmp_path / "side.txt").read_text() == "from file"


def test_where_nothing_travels_there_is_no_folder() -> None:
    with laid_out(Attachments(), CONF) as folder:
        assert folder is None


class Untidy(Job):
    """Writes to a file of its own, to what was sent along and to a folder; says what it found."""

    reduces = 0

    def map(self, key: int, value: str) -> Iterable[tuple[str, int]]:
        Path("work").mkdir()
        for name in ("own.txt", "side.txt"):
            with Path(name).open("a") as file:
                file.write(value)
        yield Path("own.txt").read_text(), len(list(Path().iterdir()))

    def cleanup(self) -> None:
        Path("side.txt").unlink()


def test_a_task_works_in_a_folder_of_its_own_and_never_in_the_callers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b", "c"):
        Path(name).write_text(f"{name}\n")
    Path("side.txt").write_text("from file")
    apart = CONF.with_overrides({"yaq.input.combine-small-files": "false"})
    run_local(Untidy, ["a", "b", "c"], "out", apart, attachments=Attachments(files=["side.txt"]))
    lines = sorted(line for part in Path("out").glob("part-*") for line in part.read_text().splitlines())
    assert lines == ["a\t3", "b\t3", "c\t3"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "c", "out", "side.txt"]
    assert Path("side.txt").read_text() == "from file"


@pytest.mark.parametrize(
    ("attachments", "message"),
    [
        (Attachments(files=["/no/such"]), "no file /no/such: it was to be sent along"),
        (Attachments(files=["/tmp"]), "/tmp is a folder: pack it and ship the archive"),
        (Attachments(files=[f"{__file__}#a", f"{__file__}#a"]), "two of the files are named a"),
        (Attachments(archives=["BROKEN.zip"]), "cannot be unpacked"),
        (Attachments(archives=["BROKEN.tar.gz"]), "cannot be unpacked"),
    ],
)
def test_what_cannot_travel_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attachments: Attachments, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("BROKEN.zip", "BROKEN.tar.gz"):
        Path(name).write_bytes(b"no archive at all")
    with pytest.raises(SubmitError, match=message), laid_out(attachments, CONF):
        pass
    assert Path.cwd() == tmp_path
