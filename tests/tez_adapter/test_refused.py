"""What cannot work is refused before anything starts; what is merely odd about an input is said once."""

import gzip
import sys
import tarfile
import zipfile
from collections.abc import Callable
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

import pytest

from tez_adapter.client.archives import check_archives
from tez_adapter.client.staging import SubmitError
from tez_adapter.client.submit import Attachments, submit_command, submit_mapreduce, submit_streaming
from tez_adapter.tasks.scripts import check_script
from yaqd.config import ConfigError, Configuration
from yaqd.mapreduce import JobError

CONF = Configuration.load(environ={})
COMPRESS = "mapreduce.output.fileoutputformat.compress"
SCRIPT = """
from yaqd.mapreduce import Job
import {module}

class J(Job):
    pass
"""


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A script and the module that it imports, side by side."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in ("beside_it", "other_name"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    (tmp_path / "beside_it.py").write_text("found = 1\n")
    path = tmp_path / "job.py"
    path.write_text(SCRIPT.format(module="beside_it"))
    return path


def _check(job: Path, *py_files: str, files: tuple[str, ...] = ()) -> str:
    return check_script(CONF, str(job), None, py_files, files).job_class.__name__


def test_a_module_that_is_not_sent_along_is_missed_where_the_job_is_submitted(job: Path) -> None:
    module = job.with_name("beside_it.py")
    wanted = f"No module named 'beside_it'; tasks have only what is sent along: add --py-files {module}$"
    with pytest.raises(JobError, match=wanted):
        _check(job)
    with pytest.raises(JobError, match=wanted):
        _check(job, f"{module}#other_name.py")  # containers see it under another name
    assert _check(job, str(module)) == "J"


def test_files_that_travel_under_the_modules_name_are_found(job: Path) -> None:
    module = job.with_name("beside_it.py").rename(job.with_name("renamed.py"))
    assert _check(job, files=(f"{module}#beside_it.py",)) == "J"


def test_a_package_beside_the_script_is_to_be_zipped(job: Path) -> None:
    package = job.with_name("packed_it")
    package.mkdir()
    (package / "__init__.py").touch()
    job.write_text(SCRIPT.format(module="packed_it"))
    with pytest.raises(JobError, match=f"zip {package} and add it with --py-files$"):
        _check(job)
    job.write_text(SCRIPT.format(module="nowhere_at_all"))
    with pytest.raises(JobError, match=r"No module named 'nowhere_at_all'$"):
        _check(job)


def test_compiled_modules_in_an_archive_are_refused(job: Path) -> None:
    archive = job.with_name("fast.whl")
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr(f"fast/core{EXTENSION_SUFFIXES[0]}", b"")
    with pytest.raises(SubmitError, match=r"^--py-files .*/fast\.whl: its fast/core\S+ is compiled"):
        _check(job, str(archive))


def test_a_codec_of_the_output_that_does_not_exist_is_refused_by_whoever_submits(job: Path) -> None:
    job.write_text(SCRIPT.format(module="sys"))
    conf = CONF.with_overrides({COMPRESS: "true", f"{COMPRESS}.codec": "org.apache.hadoop.io.compress.LzoCodec"})
    where = {"inputs": [str(job)], "output": str(job.with_name("out"))}
    for submit in (
        lambda: submit_mapreduce(conf, str(job), **where),  # type: ignore[arg-type]
        lambda: submit_streaming(conf, mapper="cat", **where),  # type: ignore[arg-type]
    ):
        with pytest.raises(ConfigError, match="is no codec of output files; write one of gzip, bzip2, zstd, lz4"):
            submit()


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.zip", b"PK"), ("a.JAR", b""), ("a.tar", b"x" * 2000), ("a.tgz", b"\x1f\x8b"), ("a.tar.gz", b"PK\5\6")],
)
def test_an_archive_that_is_none_is_refused_by_whoever_submits(job: Path, name: str, content: bytes) -> None:
    job.write_text(SCRIPT.format(module="sys"))
    broken = job.with_name(name)
    broken.write_bytes(content)
    attachments = Attachments(archives=[f"{broken}#other.txt"])
    where: dict[str, Any] = {
        "inputs": [str(job)],
        "output": str(job.with_name("out")),
        "attachments": attachments,
    }
    submits: tuple[Callable[[], object], ...] = (
        lambda: submit_mapreduce(CONF, str(job), **where),
        lambda: submit_streaming(CONF, mapper="cat", **where),
        lambda: submit_command(CONF, ["true"], attachments=attachments),
    )
    for submit in submits:
        with pytest.raises(SubmitError, match=rf"^--archives {broken}: no (zip|tar) file, though named so"):
            submit()


def test_archives_that_nodes_unpack_and_other_files_are_taken(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        packed.writestr("f", b"")
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as tar:
        tar.add(__file__, "f")
    (tmp_path / "a.dat").write_bytes(b"no archive")
    names = [
        f"file://{tmp_path}/a.zip",
        f"{tmp_path}/a.tar.gz#t",
        f"{tmp_path}/a.dat#d.zip",
        "hdfs://h/b.zip",
        "no.zip",
    ]
    check_archives(names)


@pytest.mark.slow
def test_gzip_with_garbage_behind_it_is_counted_right_and_told_once(cluster: Configuration, tmp_path: Path) -> None:
    files = [tmp_path / "in.gz", tmp_path / "in2.gz"]
    for file in files:
        file.write_bytes(gzip.compress(b"a b\n" * 1000) + b"\0\0garbage")
    (tmp_path / "job.py").write_text(
        "from yaqd.mapreduce import Job\n\n\nclass J(Job):\n    def map(self, key, value):\n        yield value, 1\n\n"
        "    def reduce(self, key, values):\n        yield key, sum(values)\n"
    )
    conf = cluster.with_overrides({"yaq.input.combine-small-files": "false"})
    inputs = [str(file) for file in (*files, files[0])]
    job = submit_mapreduce(conf, str(tmp_path / "job.py"), inputs=inputs, output=str(tmp_path / "out"))
    result = job.wait(timeout_s=60)
    job.close()
    assert result.succeeded, result.diagnostics
    assert (tmp_path / "out" / "part-r-00000").read_text() == "a b\t3000\n"
    assert sorted(result.notes) == [f"file://{file}: decompression OK, trailing garbage ignored" for file in files]
