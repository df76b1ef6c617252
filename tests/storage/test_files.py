"""Local files and folders: whole or not at all, and one line for each thing that goes wrong."""

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from yaqd.config import ConfigError, Configuration
from yaqd.storage import (
    NotAFile,
    PathDenied,
    PathExists,
    PathNotFound,
    StorageError,
    StorageFull,
    StorageUnavailable,
    get_filesystem,
    locate,
    open_writer,
    qualify,
)
from yaqd.storage.hdfs.client import translate
from yaqd.storage.hdfs.namenode import namenode_addresses
from yaqd.storage.hdfs.optional import ArrowFileSystem
from yaqd.storage.local import LocalFileSystem

CONF = Configuration.load(environ={})
HDFS = CONF.with_overrides({"fs.defaultFS": "hdfs://nn:9000"})


class ArrowOnDisk(ArrowFileSystem):
    """pyarrow's face over a folder instead of over HDFS: the same calls, without a JVM."""

    def __init__(self, root: Path) -> None:
        from pyarrow import fs

        super().__init__(fs.SubTreeFileSystem(str(root), fs.LocalFileSystem()), "nn:9000", HDFS, "u")


@pytest.fixture(params=["local", "arrow"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Any, str, Path]:
    """A file system, a folder on it, and where that folder is on disk."""
    if request.param == "local":
        return LocalFileSystem(CONF), f"file://{tmp_path}", tmp_path
    return ArrowOnDisk(tmp_path), "hdfs://nn:9000", tmp_path


def names_in(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def write(filesystem: Any, path: str, data: bytes, overwrite: bool = False) -> None:
    writer = filesystem.create(path, overwrite=overwrite)
    writer.write(data)
    writer.close()


def test_files_appear_whole_under_their_name(root: tuple[Any, str, Path]) -> None:
    filesystem, base, disk = root
    writer = filesystem.create(f"{base}/d/new")
    writer.write(b"one")
    assert not filesystem.exists(f"{base}/d/new")
    writer.write(bytearray(b"two"))
    writer.close()
    writer.close()
    assert (disk / "d" / "new").read_bytes() == b"onetwo"
    assert names_in(disk / "d") == ["new"]


def test_an_aborted_file_leaves_nothing(root: tuple[Any, str, Path]) -> None:
    filesystem, base, disk = root
    writer = filesystem.create(f"{base}/new")
    writer.write(b"one")
    writer.abort()
    writer.abort()
    assert names_in(disk) == []


def test_files_are_replaced_only_on_demand(root: tuple[Any, str, Path]) -> None:
    filesystem, base, disk = root
    write(filesystem, f"{base}/f", b"old")
    with pytest.raises(PathExists, match="/f exists already"):
        write(filesystem, f"{base}/f", b"new")
    write(filesystem, f"{base}/f", b"new", overwrite=True)
    assert (disk / "f").read_bytes() == b"new" and names_in(disk) == ["f"]
    filesystem.mkdirs(f"{base}/d")
    with pytest.raises(NotAFile, match="is a folder"):
        filesystem.create(f"{base}/d", overwrite=True)


def test_ranges(root: tuple[Any, str, Path]) -> None:
    filesystem, base, disk = root
    data = os.urandom(2_500_000)
    (disk / "f").write_bytes(data)
    assert b"".join(filesystem.open_range(f"{base}/f", 0)) == data
    assert b"".join(filesystem.open_range(f"{base}/f", 7, 2_000_000)) == data[7:2_000_007]
    assert b"".join(filesystem.open_range(f"{base}/f", 2_499_999, 50)) == data[-1:]
    assert list(filesystem.open_range(f"{base}/f", 3_000_000, 5)) == []
    assert max(map(len, filesystem.open_range(f"{base}/f", 0))) <= 1 << 20
    reader = filesystem.open(f"{base}/f")
    assert reader.read(3) + reader.read(1_500_000) + reader.read() == data
    assert reader.read(1) == b""
    reader.close()


def test_status_and_list(root: tuple[Any, str, Path]) -> None:
    filesystem, base, disk = root
    for name in ("b", "a", ".h"):
        (disk / name).write_bytes(b"xyz")
    (disk / "d").mkdir()
    listed = filesystem.list(base + "/")
    assert [status.path for status in listed] == [f"{base}/{name}" for name in (".h", "a", "b", "d")]
    found = filesystem.status(f"{base}/a")
    assert found == listed[1] and (found.length, found.is_dir) == (3, False)
    assert found.mtime_ms == (disk / "a").stat().st_mtime_ns // 1_000_000 and found.block_size > 0
    assert listed[3].is_dir and listed[3].length == 0
    assert filesystem.list(f"{base}/a") == [found]
    with pytest.raises(PathNotFound, match="/none does not exist"):
        filesystem.list(f"{base}/none")


def test_rename_never_takes_anothers_place(root: tuple[Any, str, Path]) -> None:
    filesystem, base, disk = root
    (disk / "a").write_bytes(b"a")
    (disk / "b").write_bytes(b"b")
    with pytest.raises(PathExists, match="/b exists already"):
        filesystem.rename(f"{base}/a", f"{base}/b")
    with pytest.raises(PathNotFound):
        filesystem.rename(f"{base}/none", f"{base}/c")
    filesystem.rename(f"{base}/a", f"{base}/c")
    filesystem.rename(f"{base}/c", f"{base}/b", overwrite=True)
    assert names_in(disk) == ["b"] and (disk / "b").read_bytes() == b"a"
    (disk / "d").mkdir()
    (disk / "e").mkdir()
    with pytest.raises(PathExists):
        filesystem.rename(f"{base}/d", f"{base}/e")


def test_delete(root: tuple[Any, str, Path]) -> None:
    filesystem, base, disk = root
    filesystem.mkdirs(f"{base}/d/e")
    filesystem.mkdirs(f"{base}/d/e")
    (disk / "d" / "f").write_bytes(b"")
    with pytest.raises(StorageError, match="not empty"):
        filesystem.delete(f"{base}/d")
    assert filesystem.delete(f"{base}/d/f") and not filesystem.delete(f"{base}/d/f")
    assert filesystem.delete(f"{base}/d", recursive=True)
    assert names_in(disk) == [] and not filesystem.delete(f"{base}/d", recursive=True)
    with pytest.raises(StorageError, match="root folder"):
        filesystem.delete("/", recursive=True)


def test_what_was_given_up_is_not_made_again(root: tuple[Any, str, Path]) -> None:
    """A task that goes on after its job's output was removed gets an error, and leaves nothing."""
    filesystem, base, _ = root
    with pytest.raises(PathNotFound):
        filesystem.mkdirs(f"{base}/gone/task", make_parents=False)
    with pytest.raises(PathNotFound):
        open_writer(filesystem, f"{base}/gone/part", "text", CONF).close()
    assert not filesystem.exists(f"{base}/gone")
    filesystem.mkdirs(f"{base}/job")
    for _ in range(2):
        filesystem.mkdirs(f"{base}/job/task", make_parents=False)


def test_a_local_folder_is_gone_after_delete_though_others_delete_it_too(tmp_path: Path) -> None:
    filesystem, folder, start = LocalFileSystem(CONF), tmp_path / "d", Barrier(3)

    def remove(_: int) -> bool:
        start.wait()
        filesystem.delete(str(folder), recursive=True)
        return not folder.exists()

    with ThreadPoolExecutor(start.parties) as threads:
        for _ in range(60):
            folder.mkdir()
            for number in range(100):
                (folder / str(number)).touch()
            assert all(threads.map(remove, range(start.parties)))


def test_a_path_of_another_file_system_is_refused(root: tuple[Any, str, Path]) -> None:
    filesystem, _, _ = root
    for path in ("hdfs://other:1/x",):
        with pytest.raises(StorageError, match="is not on"):
            filesystem.status(path)


def test_local_errors_are_one_line(tmp_path: Path) -> None:
    filesystem = LocalFileSystem(CONF)
    (tmp_path / "f").write_bytes(b"")
    cases: list[tuple[type[StorageError], Callable[[], Any]]] = [
        (PathNotFound, lambda: filesystem.status(f"{tmp_path}/none")),
        (PathNotFound, lambda: list(filesystem.open_range(f"{tmp_path}/none", 0))),
        (NotAFile, lambda: filesystem.open(str(tmp_path))),
        (NotAFile, lambda: filesystem.mkdirs(f"{tmp_path}/f/x")),
        (NotAFile, lambda: filesystem.create(f"{tmp_path}/f/x")),
        (PathExists, lambda: filesystem.mkdirs(f"{tmp_path}/f")),
        (StorageError, lambda: filesystem.create(f"{tmp_path}/{'x' * 300}").close()),
    ]
    for kind, call in cases:
        with pytest.raises(kind) as caught:
            call()
        assert str(tmp_path) in str(caught.value) and "\n" not in str(caught.value)


def test_a_full_disk_is_said(tmp_path: Path) -> None:
    script = f"""
import resource, signal
from yaqd.config import Configuration
from yaqd.storage import StorageError, get_filesystem
conf = Configuration.load(environ={{}})
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
writer = get_filesystem("/", conf).create({str(tmp_path / "f")!r})
try:
    writer.write(b"x" * 200_000)
except StorageError as error:
    print(error)
    writer.abort()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30)
    assert done.stdout == f"{tmp_path}/f: File too large\n", done.stderr
    assert names_in(tmp_path) == []


@pytest.mark.parametrize(
    ("text", "conf", "full"),
    [
        ("/a/b", CONF, "file:///a/b"),
        ("file:///a//b/../c/", CONF, "file:///a/c"),
        ("file:/a", CONF, "file:///a"),
        ("/../../etc", CONF, "file:///etc"),
        ("/a", HDFS, "hdfs://nn:9000/a"),
        ("hdfs:///a", HDFS, "hdfs://nn:9000/a"),
        ("HDFS://other:1/a b%20c", HDFS, "hdfs://other:1/a b%20c"),
        ("hdfs://nn:9000", HDFS, "hdfs://nn:9000/"),
        ("file:///a", HDFS, "file:///a"),
        ("a:b", CONF, f"file://{Path.cwd()}/a:b"),
    ],
)
def test_paths_belong_to_their_file_system(text: str, conf: Configuration, full: str) -> None:
    assert qualify(text, conf) == full
    assert qualify(full, conf) == full


def test_relative_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HADOOP_USER_NAME", "ann")
    assert qualify("x/y", HDFS) == "hdfs://nn:9000/user/ann/x/y"
    assert locate("x", CONF).path == f"{Path.cwd()}/x"


def test_bad_paths_are_one_line() -> None:
    for text in ("", "a\0b", "x" * 9000):
        with pytest.raises(StorageError, match="bad path"):
            locate(text, CONF)
    with pytest.raises(StorageError, match=r"names no host and fs\.defaultFS is file"):
        locate("hdfs:///x", CONF)
    with pytest.raises(ConfigError, match="names no file system"):
        locate("x", CONF.with_overrides({"fs.defaultFS": "hdfs://"}))
    with pytest.raises(StorageError, match="no file system for s3://"):
        get_filesystem("s3://bucket/x", CONF)


def test_optional_back_ends_say_why_they_cannot_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nonexistent")
    for name, need in (("hdfs3", "needs Python before 3.10"), ("pyarrow", "needs JAVA_HOME")):
        conf = HDFS.with_overrides({"yaq.storage.hdfs.implementation": name})
        with pytest.raises(StorageUnavailable, match=need) as caught:
            get_filesystem("/x", conf)
        assert "\n" not in str(caught.value) and "=hdfs-native" in str(caught.value)
    with pytest.raises(ConfigError, match="hdfs-native, hdfs3, pyarrow"):
        get_filesystem("/x", HDFS.with_overrides({"yaq.storage.hdfs.implementation": "java"}))


def test_a_namenode_that_is_not_there_is_said_at_once() -> None:
    import socket

    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with pytest.raises(
            StorageUnavailable, match=f"no NameNode answers at hdfs://127.0.0.1:{port} .Connection refused"
        ):
            get_filesystem(f"hdfs://127.0.0.1:{port}/x", CONF)
    with pytest.raises(StorageUnavailable, match="is no address of a NameNode"):
        get_filesystem("hdfs://host:port/x", CONF)


def test_a_namenode_that_comes_within_the_wait_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    import socket
    import time

    pauses: list[float] = []
    with socket.socket() as late:
        late.bind(("127.0.0.1", 0))

        def pause(seconds: float) -> None:
            pauses.append(seconds)
            if len(pauses) == 2:
                late.listen()

        monkeypatch.setattr(time, "sleep", pause)
        conf = CONF.with_overrides({"yaq.storage.hdfs.connect-wait": "60s"})
        get_filesystem(f"hdfs://127.0.0.1:{late.getsockname()[1]}/x", conf)
    assert pauses == [0.25, 0.5]


def test_namenodes_of_a_name_service() -> None:
    conf = CONF.with_overrides(
        {
            "dfs.ha.namenodes.ns": "a,b",
            "dfs.namenode.rpc-address.ns.a": "h1:8020",
            "dfs.namenode.rpc-address.ns.b": "h2:9",
        }
    )
    assert namenode_addresses("ns", conf) == [("h1", 8020), ("h2", 9)]
    assert namenode_addresses("h:7", CONF) == [("h", 7)]
    assert namenode_addresses("h", CONF) == [("h", 8020)]


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (FileNotFoundError("/x"), PathNotFound, "hdfs://n/x does not exist"),
        (FileNotFoundError("Path is not a file: /x\n\tat org"), NotAFile, "hdfs://n/x is a folder, not a file"),
        (FileExistsError("rename destination /x"), PathExists, "hdfs://n/x exists already"),
        (
            RuntimeError('RPCError("org.apache.hadoop.security.AccessControlException", "Denied: \\"/\\"\\n\\tat x")'),
            PathDenied,
            'hdfs://n/x: Denied: "/"',
        ),
        (RuntimeError('RPCError("a.b.DSQuotaExceededException", "full\\n")'), StorageFull, "hdfs://n/x: full"),
        (RuntimeError('RPCError("a.b.Odd", "odd")'), StorageError, "hdfs://n/x: odd"),
        (OSError("Connection refused"), StorageUnavailable, "hdfs://n/x: HDFS does not answer: Connection refused"),
        (RuntimeError("plain\nmore"), StorageError, "hdfs://n/x: plain"),
    ],
)
def test_errors_of_the_hdfs_library(error: Exception, kind: type[StorageError], text: str) -> None:
    found = translate(error, "hdfs://n/x")
    assert type(found) is kind and str(found) == text


def test_copying_files_needs_no_numpy() -> None:
    script = (
        "import sys, yaqd.storage as s\nfrom yaqd.config import Configuration\n"
        "s.get_filesystem('/', Configuration.load(environ={})).list('/')\n"
        "print('numpy' in sys.modules, 'pyarrow' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30)
    assert done.stdout == "False False\n", done.stderr
