"""Our storage on a real NameNode and DataNode: files, errors, splits with hosts, a whole job, and use after a fork."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from benchmarks.stock.clients import StockClients
from benchmarks.stock.daemons import StockHdfs
from tez_adapter.client.local import run_local
from tez_adapter.client.staging import STAGING_KEY, Staging
from yaqd.config import Configuration
from yaqd.mapreduce import InputFormat, Job
from yaqd.storage import (
    BlockLocation,
    FileSystem,
    NotAFile,
    OutputCommitter,
    PathExists,
    PathNotFound,
    StorageError,
    check_output_possible,
    compute_splits,
    get_filesystem,
    glob,
    open_reader,
    qualify,
)
from yaqd.storage.errors import PathDenied, StorageNotReady
from yaqd.storage.hdfs.client import HdfsFileSystem
from yaqd.storage.paths import hadoop_user

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]
CLIENT = "HDFS"

_BLOCK = 1 << 20


@pytest.fixture
def conf(hdfs: StockHdfs, monkeypatch: pytest.MonkeyPatch) -> Configuration:
    """With small blocks. A process opens a file system once, and another test may have done so with other settings."""
    monkeypatch.setattr("yaqd.storage.opening._open_systems", {})
    return Configuration.load(hdfs.conf_dir, environ={}).with_overrides({"dfs.blocksize": str(_BLOCK)})


@pytest.fixture
def folder(conf: Configuration, request: pytest.FixtureRequest) -> Iterator[tuple[FileSystem, str]]:
    """The file system and an empty folder on it, gone after the test."""
    path = qualify(f"/tmp/storage-{request.node.name}", conf)
    filesystem = get_filesystem(path, conf)
    filesystem.mkdirs(path)
    yield filesystem, path
    filesystem.delete(path, recursive=True)


def _write(filesystem: FileSystem, path: str, data: bytes, *, overwrite: bool = False) -> None:
    writer = filesystem.create(path, overwrite=overwrite)
    writer.write(data)
    writer.close()


def test_files_appear_whole_and_come_back(folder: tuple[FileSystem, str]) -> None:
    filesystem, base = folder
    # Two blocks: a third is refused where the NameNode has not heard of the first yet (a new DataNode is slow to tell).
    data = os.urandom(2_000_000)
    writer = filesystem.create(f"{base}/deep/one")
    writer.write(data[:1_000_000])
    assert not filesystem.exists(f"{base}/deep/one")
    writer.write(bytearray(data[1_000_000:]))
    writer.close()
    writer.close()

    assert [status.path for status in filesystem.list(f"{base}/deep")] == [f"{base}/deep/one"]
    assert b"".join(filesystem.open_range(f"{base}/deep/one", 0)) == data
    assert b"".join(filesystem.open_range(f"{base}/deep/one", 999_999, 900_000)) == data[999_999:1_899_999]
    assert b"".join(filesystem.open_range(f"{base}/deep/one", 1_999_999, 50)) == data[-1:]
    assert list(filesystem.open_range(f"{base}/deep/one", 9_000_000)) == []
    reader = filesystem.open(f"{base}/deep/one")
    assert reader.read(10) + reader.read() == data
    found = filesystem.status(f"{base}/deep/one")
    assert (found.length, found.block_size, found.is_dir) == (len(data), _BLOCK, False)


def test_safe_mode_is_waited_for(hdfs: StockHdfs, conf: Configuration, folder: tuple[FileSystem, str]) -> None:
    filesystem, base = folder
    admin = StockClients(hdfs.jars, hdfs.conf_dir)
    admin.dfsadmin("-safemode", "enter").checked()
    try:
        impatient = HdfsFileSystem(
            filesystem.uri.removeprefix("hdfs://"),
            conf.with_overrides({"yaq.storage.hdfs.safe-mode-wait": "0"}),
            hadoop_user(),
        )
        with pytest.raises(StorageNotReady, match="safe mode"):
            impatient.mkdirs(f"{base}/now")
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(filesystem.mkdirs, f"{base}/later")
            admin.dfsadmin("-safemode", "leave").checked()
            waiting.result(60)
    finally:
        admin.dfsadmin("-safemode", "leave")
    assert [status.path for status in filesystem.list(base)] == [f"{base}/later"]


def test_an_aborted_file_leaves_nothing(folder: tuple[FileSystem, str]) -> None:
    filesystem, base = folder
    writer = filesystem.create(f"{base}/one")
    writer.write(b"x")
    writer.abort()
    assert filesystem.list(base) == []


def test_a_stock_client_reads_what_we_wrote(hdfs: StockHdfs, folder: tuple[FileSystem, str]) -> None:
    filesystem, base = folder
    _write(filesystem, f"{base}/text", "wörd\n".encode())
    shown = StockClients(hdfs.jars, hdfs.conf_dir).fs("-cat", f"{base}/text").checked()
    assert shown.stdout == "wörd\n"


def test_errors_are_one_line_of_the_right_kind(folder: tuple[FileSystem, str]) -> None:
    filesystem, base = folder
    _write(filesystem, f"{base}/f", b"f")
    _write(filesystem, f"{base}/g", b"g")
    cases: list[tuple[type[StorageError], Callable[[], Any]]] = [
        (PathNotFound, lambda: filesystem.status(f"{base}/none")),
        (PathNotFound, lambda: filesystem.open(f"{base}/none")),
        (PathNotFound, lambda: filesystem.list(f"{base}/none")),
        (PathNotFound, lambda: filesystem.block_locations(f"{base}/none", 0, 1)),
        (PathNotFound, lambda: filesystem.rename(f"{base}/none", f"{base}/x")),
        (PathNotFound, lambda: filesystem.rename(f"{base}/f", f"{base}/none/x")),
        (PathNotFound, lambda: filesystem.mkdirs(f"{base}/none/x", make_parents=False)),
        (PathNotFound, lambda: filesystem.create(f"{base}/none/x", make_parents=False)),
        (PathExists, lambda: filesystem.create(f"{base}/f")),
        (PathExists, lambda: filesystem.rename(f"{base}/f", f"{base}/g")),
        (NotAFile, lambda: filesystem.open(base)),
        (NotAFile, lambda: filesystem.create(base, overwrite=True)),
        (NotAFile, lambda: filesystem.create(f"{base}/f/x")),
        (NotAFile, lambda: filesystem.mkdirs(f"{base}/f/x")),
        (StorageError, lambda: filesystem.delete(base)),
        (StorageError, lambda: filesystem.create(f"{base}/a:b")),
    ]
    for kind, call in cases:
        with pytest.raises(kind) as caught:
            call()
        assert "\n" not in str(caught.value) and "\tat " not in str(caught.value) and len(str(caught.value)) < 500
    assert not filesystem.delete(f"{base}/none")
    filesystem.rename(f"{base}/f", f"{base}/g", overwrite=True)
    assert b"".join(filesystem.open_range(f"{base}/g", 0)) == b"f"


def test_another_user_is_denied(hdfs: StockHdfs, folder: tuple[FileSystem, str]) -> None:
    filesystem, base = folder
    filesystem.mkdirs(f"{base}/mine", 0o700)
    check_output_possible(filesystem, f"{base.removeprefix(filesystem.uri)}/mine/deep/out")
    done = _in_child(
        "from pathlib import Path\n"
        "from yaqd.config import Configuration\n"
        "from yaqd.storage import get_filesystem\n"
        f"conf = Configuration.load(Path({str(hdfs.conf_dir)!r}), environ={{}})\n"
        "try:\n"
        f"    get_filesystem('/', conf, user='mallory').list({base + '/mine'!r})\n"
        "except Exception as error:\n"
        "    print(type(error).__name__, error)\n"
    )
    assert done.startswith(PathDenied.__name__) and "user=mallory" in done and done.count("\n") == 1
    done = _in_child(
        "from pathlib import Path\n"
        "from tez_adapter.client.submit import SubmitError, check_output\n"
        "from yaqd.config import Configuration\n"
        f"conf = Configuration.load(Path({str(hdfs.conf_dir)!r}), environ={{}})\n"
        f"for path in ({base + '/deep/out'!r}, {base + '/mine/out'!r}):\n"
        "    try:\n"
        "        check_output(conf, path)\n"
        "    except SubmitError as error:\n"
        "        print(error)\n",
        user="mallory",
    )
    above, inside = done.splitlines()
    assert above.startswith(f"output folder {base}/deep/out cannot be made: ")
    assert inside.startswith(f"output folder {base}/mine/out cannot be made: ")
    assert all("Permission denied: user=mallory, access=" in line for line in (above, inside))


def test_users_after_the_first_make_staging_folders_too(
    hdfs: StockHdfs, conf: Configuration, folder: tuple[FileSystem, str]
) -> None:
    filesystem, base = folder
    root = f"{base}/hadoop-yarn/staging"
    Staging(conf.with_overrides({STAGING_KEY: root}), "first", "job_1_0001").create()
    assert filesystem.status(f"{base}/hadoop-yarn").mode == 0o755
    assert filesystem.status(root).mode == 0o1777
    done = _in_child(
        "from pathlib import Path\n"
        "from tez_adapter.client.staging import STAGING_KEY, Staging\n"
        "from yaqd.config import Configuration\n"
        f"conf = Configuration.load(Path({str(hdfs.conf_dir)!r}), environ={{}})\n"
        f"Staging(conf.with_overrides({{STAGING_KEY: {root!r}}}), 'bob', 'job_1_0002').create()\n",
        user="bob",
    )
    assert done == ""
    made = filesystem.status(f"{root}/bob/.staging/job_1_0002")
    assert (made.owner, made.mode) == ("bob", 0o700)


def _in_child(script: str, user: str = "") -> str:
    import subprocess
    import sys

    environ = {**os.environ, **({"HADOOP_USER_NAME": user} if user else {})}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, env=environ)
    return done.stdout + done.stderr


def test_blocks_and_splits_know_their_hosts(conf: Configuration, folder: tuple[FileSystem, str]) -> None:
    filesystem, base = folder
    _write(filesystem, f"{base}/in/file", b"".join(b"%019d\n" % number for number in range(125_000)))
    assert filesystem.block_locations(f"{base}/in/file", 0, 2_500_000) == [
        BlockLocation(start, min(_BLOCK, 2_500_000 - start), ("127.0.0.1",)) for start in range(0, 2_500_000, _BLOCK)
    ]
    assert len(filesystem.block_locations(f"{base}/in/file", _BLOCK, 10)) == 1
    splits = compute_splits([f"{base}/in/fi*"], InputFormat.parse("text"), conf)
    assert [(split.start, split.hosts) for split in sorted(splits, key=lambda split: split.start)] == [
        (start, ("127.0.0.1",)) for start in range(0, 2_500_000, _BLOCK)
    ]
    records = [value for split in splits for _, value in open_reader("text", split, conf)]
    assert sorted(map(int, records)) == list(range(125_000))
    assert [status.path for status in glob(filesystem, f"{base}/{{in,out}}/*")] == [f"{base}/in/file"]


class _WordCount(Job):
    def map(self, key: int, value: str) -> Iterator[tuple[str, int]]:
        for word in value.split():
            yield word, 1

    def reduce(self, key: str, values: Iterator[int]) -> Iterator[tuple[str, int]]:
        yield key, sum(values)

    combine = reduce


def test_a_job_from_hdfs_to_hdfs_as_on_disk(
    conf: Configuration, folder: tuple[FileSystem, str], tmp_path: Path
) -> None:
    filesystem, base = folder
    text = "".join(f"word{number % 977} and {number % 7}\n" for number in range(150_000)).encode()
    _write(filesystem, f"{base}/in", text)
    (tmp_path / "in").write_bytes(text)
    run_local(_WordCount, [f"{base}/in"], f"{base}/out", conf, 2)
    run_local(_WordCount, [f"file://{tmp_path}/in"], f"file://{tmp_path}/out", conf, 2)
    names = [status.path.rpartition("/")[2] for status in filesystem.list(f"{base}/out")]
    assert names == ["_SUCCESS", "part-r-00000", "part-r-00001"]
    for name in names:
        on_hdfs = b"".join(filesystem.open_range(f"{base}/out/{name}", 0))
        assert on_hdfs == (tmp_path / "out" / name).read_bytes()
    with pytest.raises(PathExists, match="delete it"):
        run_local(_WordCount, [f"{base}/in"], f"{base}/out", conf, 2)


def test_commits_are_repeatable(folder: tuple[FileSystem, str]) -> None:
    filesystem, base = folder
    job = OutputCommitter(filesystem, f"{base}/out", "job_1_0001")
    job.setup_job()
    for attempt in ("a_0", "a_1"):
        _write(filesystem, job.task_path(attempt, "part-r-00000"), attempt.encode())
    assert job.commit_task("a_0") == [f"{base}/out/part-r-00000"]
    assert job.commit_task("a_0") == []
    job.commit_task("a_1")
    job.commit_job()
    assert [(status.path, status.length) for status in filesystem.list(f"{base}/out")] == [
        (f"{base}/out/_SUCCESS", 0),
        (f"{base}/out/part-r-00000", 3),
    ]


def test_a_forked_child_gets_a_client_of_its_own(conf: Configuration, folder: tuple[FileSystem, str]) -> None:
    filesystem, base = folder
    _write(filesystem, f"{base}/f", b"x")
    pid = os.fork()
    if pid == 0:
        is_same = get_filesystem(base, conf) is filesystem
        os._exit(7 if not is_same and get_filesystem(base, conf).exists(f"{base}/f") else 1)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 7
    assert get_filesystem(base, conf) is filesystem


def test_one_process_is_one_user(conf: Configuration) -> None:
    get_filesystem("/", conf).list("/")
    with pytest.raises(StorageError, match="hdfs-native needs another process to be mallory"):
        get_filesystem("/", conf, user="mallory")
    assert "mallory" not in os.environ.get("HADOOP_USER_NAME", "")
