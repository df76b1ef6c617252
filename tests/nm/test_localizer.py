"""Localization: files as Hadoop lays them out, shared, bounded, and archives that mean harm."""

import asyncio
import errno
import io
import os
import stat
import tarfile
import tempfile
import zipfile
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from nm.daemon import NodeManager
from nm.launch.context import LocalResource, local_resource
from nm.localizer.archives import ArchiveLimits, BadArchive, unpack
from nm.localizer.localizer import LocalizationFailed, ResourceLocalizer
from nm.resources.directories import NodeDirectories, delete_tree
from tests.nm.nm_cluster import (
    USER,
    FakeResourceManager,
    Master,
    application,
    container_id,
    launch_context,
    local_file,
    log_text,
    node_configuration,
)
from yaqd.model import ExitStatus
from yaqd.proto import yarn_common_pb2 as common

LIMITS = ArchiveLimits(max_bytes=1 << 20, max_entries=100)
MB = 1 << 20


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[Callable[[int], ResourceLocalizer]]:
    """Makes a localizer with a cache of so many bytes."""
    threads = ThreadPoolExecutor(2)

    def make(cache_bytes: int) -> ResourceLocalizer:
        return ResourceLocalizer(
            node_configuration(tmp_path, 1),
            NodeDirectories([tmp_path / "local"], [tmp_path / "logs"]),
            threads=threads,
            cache_target_bytes=cache_bytes,
            limits=LIMITS,
            delete=delete_tree,
        )

    yield make
    threads.shutdown()


def resource(path: Path, **kind: object) -> LocalResource:
    return local_resource(path.name, local_file(path, **kind))  # type: ignore[arg-type]


def source(tmp_path: Path, name: str, size: int = 100) -> Path:
    folder = tmp_path / "source"
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(os.urandom(size))
    return folder / name


async def test_concurrent_requests_share_one_fetch(make: Callable[[int], ResourceLocalizer], tmp_path: Path) -> None:
    localizer = make(MB)
    wanted = resource(source(tmp_path, "a"), visibility=common.PRIVATE)
    found = await asyncio.gather(*(localizer.localize(USER, application(n), [wanted]) for n in range(1, 9)))
    assert len({f.links["a"] for f in found}) == 1
    assert sum(f.counters[2] for f in found) >= 1 and localizer.cache_bytes == 100
    assert found[0].links["a"].parent.parent == tmp_path / "local" / "usercache" / USER / "filecache"


async def test_no_resource_is_missing_however_closely_they_arrive(
    make: Callable[[int], ResourceLocalizer], tmp_path: Path
) -> None:
    localizer = make(MB)
    wanted = [resource(source(tmp_path, name)) for name in "abc"]
    for number in range(1, 401):
        found = await localizer.localize(USER, application(number), wanted)
        assert sorted(found.links) == ["a", "b", "c"], number


async def test_scopes_keep_users_and_applications_apart(
    make: Callable[[int], ResourceLocalizer], tmp_path: Path
) -> None:
    localizer = make(MB)
    path = source(tmp_path, "a")
    one = await localizer.localize("alice", application(1), [resource(path)])
    two = await localizer.localize("alice", application(2), [resource(path)])
    other = await localizer.localize("bob", application(3), [resource(path, visibility=common.PRIVATE)])
    assert len({one.links["a"], two.links["a"], other.links["a"]}) == 3
    assert str(application(1)) in str(one.links["a"])
    assert stat.S_IMODE(one.links["a"].stat().st_mode) == 0o500


async def test_public_needs_world_readable_sources(make: Callable[[int], ResourceLocalizer], tmp_path: Path) -> None:
    localizer = make(MB)
    path = source(tmp_path, "a")
    path.chmod(0o600)
    with pytest.raises(LocalizationFailed, match="not publicly accessible"):
        await localizer.localize(USER, application(), [resource(path, visibility=common.PUBLIC)])
    path.chmod(0o644)
    path.parent.chmod(0o700)
    with pytest.raises(LocalizationFailed, match=r"Let others into .*/source, or"):
        await localizer.localize(USER, application(), [resource(path, visibility=common.PUBLIC)])
    path.parent.chmod(0o755)
    path.chmod(0o640)
    with pytest.raises(LocalizationFailed, match=r"Let others into .*/source/a, or"):
        await localizer.localize(USER, application(), [resource(path.parent, visibility=common.PUBLIC)])


@pytest.mark.parametrize("visibility", [common.PUBLIC, common.PRIVATE, common.APPLICATION])
@pytest.mark.parametrize(
    ("pattern", "unpacked"),
    [("", {"lib/a.jar", "lib/b.txt", "top"}), (r"lib/.*\.jar", {"lib/a.jar"}), ("lib/", set()), ("lib", set())],
)
async def test_pattern_keeps_the_jar_beside_the_entries_it_names_whole(
    make: Callable[[int], ResourceLocalizer],
    open_folder: Path,
    visibility: "common.LocalResourceVisibility",
    pattern: str,
    unpacked: set[str],
) -> None:
    jar = source(open_folder, "Job.JAR")
    with zipfile.ZipFile(jar, "w") as zipped:
        for name in ("lib/", "lib/a.jar", "lib/b.txt", "top"):
            zipped.writestr(name, "" if name.endswith("/") else name)
    wanted = resource(jar, type=common.PATTERN, pattern=pattern, visibility=visibility)
    found = (await make(MB).localize(USER, application(), [wanted])).links["Job.JAR"]
    files = {str(path.relative_to(found)) for path in found.rglob("*") if path.is_file()}
    assert files == unpacked | {"Job.JAR"}
    assert (found / "Job.JAR").read_bytes() == jar.read_bytes()
    mode = 0o555 if visibility == common.PUBLIC else 0o500
    assert {stat.S_IMODE((found / name).stat().st_mode) for name in files} == {mode}


@pytest.mark.parametrize(("name", "is_folder"), [("a.zip", True), ("a.txt", False)])
async def test_pattern_on_what_is_no_jar_is_an_archive_or_a_plain_file(
    make: Callable[[int], ResourceLocalizer], tmp_path: Path, name: str, is_folder: bool
) -> None:
    path = source(tmp_path, name)
    path.write_bytes(zip_with("x", "y"))
    wanted = resource(path, type=common.PATTERN, pattern="x")
    found = (await make(MB).localize(USER, application(), [wanted])).links[name]
    assert found.is_dir() is is_folder
    if is_folder:
        assert sorted(p.name for p in found.iterdir()) == ["x", "y"], "the pattern counts for jars alone"


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that others can reach, as PUBLIC needs and pytest's own are not."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


async def test_unused_resources_go_when_room_is_needed(
    make: Callable[[int], ResourceLocalizer], tmp_path: Path
) -> None:
    localizer = make(250)
    held = [
        await localizer.localize(USER, application(), [resource(source(tmp_path, n), visibility=common.PRIVATE)])
        for n in "abcd"
    ]
    assert localizer.cache_bytes == 400  # all in use: none goes
    localizer.release(held[2])
    localizer.release(held[0])
    assert localizer.cache_bytes == 200
    assert [h.links[n].exists() for h, n in zip(held, "abcd", strict=True)] == [False, True, False, True]


async def test_changed_and_missing_sources_fail_with_hadoops_words(
    make: Callable[[int], ResourceLocalizer], tmp_path: Path
) -> None:
    localizer = make(MB)
    path = source(tmp_path, "a")
    wanted = resource(path)
    os.utime(path, (1, 1))
    with pytest.raises(
        LocalizationFailed, match=r'filesystem - expected: "\d{4}.*", was: "19\d\d-.*:01.000.*", current'
    ):
        await localizer.localize(USER, application(), [wanted])
    path.unlink()
    with pytest.raises(LocalizationFailed, match="does not exist"):
        await localizer.localize(USER, application(), [wanted])
    again = resource(source(tmp_path, "a"))
    assert (await localizer.localize(USER, application(), [again])).links["a"].exists()  # a failure is not remembered


async def test_container_finds_files_archives_and_folders(
    rm: FakeResourceManager, node: NodeManager, master: Master, tmp_path: Path
) -> None:
    plain = source(tmp_path, "plain.txt")
    plain.write_text("plain")
    packed = source(tmp_path, "Packed.TGZ")
    with tarfile.open(packed, "w:gz") as archive:
        archive.add(plain, "inside/plain.txt")
    jar = source(tmp_path, "job.jar")
    with zipfile.ZipFile(jar, "w") as zipped:
        zipped.writestr("classes/A.class", "a")
        zipped.writestr("other/B.class", "b")
    folder = tmp_path / "source" / "folder"
    folder.mkdir()
    (folder / "deep").write_text("deep")
    resources = {
        "plain.txt": local_file(plain),
        "dir/packed": local_file(packed, type=common.ARCHIVE),
        "job.jar": local_file(jar, type=common.PATTERN, pattern=r"(?:classes/|lib/).*"),
        "folder": local_file(folder),
    }
    command = "cat plain.txt dir/packed/inside/plain.txt folder/deep 1><LOG_DIR>/stdout; find job.jar/ | sort >>{{X}}"
    context = launch_context(command, resources=resources, environment={"X": "<LOG_DIR>/stdout"})
    await master.run(container_id(1), context)
    end = await rm.end_of(container_id(1))
    assert end.exit_status == 0, end.diagnostics
    text = log_text(node, container_id(1), "stdout")
    assert text == "plainplaindeepjob.jar/\njob.jar/classes\njob.jar/classes/A.class\njob.jar/job.jar\n"


async def test_failed_localization_ends_the_container(
    rm: FakeResourceManager, node: NodeManager, master: Master, tmp_path: Path
) -> None:
    wanted = local_file(source(tmp_path, "a"))
    wanted.timestamp += 1
    await master.run(container_id(1), launch_context("true", resources={"a": wanted}))
    end = await rm.end_of(container_id(1))
    assert end.exit_status == ExitStatus.INVALID
    assert "changed on src filesystem" in end.diagnostics


@pytest.mark.parametrize("step", ["nm.localizer.fetch._fetch_into", "nm.containers.launcher.prepare"])
async def test_a_disk_without_room_is_the_disks_fault(
    rm: FakeResourceManager,
    node: NodeManager,
    master: Master,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(step, full)
    wanted = local_file(source(tmp_path, "a"))
    await master.run(container_id(1), launch_context("true", resources={"a": wanted}))
    end = await rm.end_of(container_id(1))
    assert end.exit_status == ExitStatus.DISKS_FAILED
    assert "No space left on device; free space there or name other folders in yarn.nodemanager" in end.diagnostics


def tar_with(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for info, content in members:
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


def zip_with(*names: str, size: int = 1) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(name, b"x" * size)
    return buffer.getvalue()


HOSTILE = {
    "parent.tar": tar_with((member("../evil"), b"x")),
    "absolute.tar": tar_with((member("/tmp/evil-absolute"), b"x")),
    "parent.zip": zip_with("../evil"),
    "absolute.zip": zip_with("/tmp/evil-absolute"),
    "link-out.tar": tar_with((member("l", tarfile.SYMTYPE, "../.."), b"")),
    "link-absolute.tar": tar_with((member("l", tarfile.SYMTYPE, "/etc"), b"")),
    "link-chain.tar": tar_with(
        (member("a", tarfile.SYMTYPE, "."), b""),
        (member("b", tarfile.SYMTYPE, "a/.."), b""),
    ),
    "through-link.tar": tar_with(
        (member("d", tarfile.SYMTYPE, "e"), b""), (member("e/"), b""), (member("d/x", tarfile.SYMTYPE, "y"), b"")
    ),
    "hard-out.tar": tar_with((member("h", tarfile.LNKTYPE, "../../etc/passwd"), b"")),
    "hard-missing.tar": tar_with((member("h", tarfile.LNKTYPE, "nothing"), b"")),
    "device.tar": tar_with((member("d", tarfile.CHRTYPE), b"")),
    "pipe.tar": tar_with((member("p", tarfile.FIFOTYPE), b"")),
    "large.tar": tar_with((member("big"), b"x" * (2 * MB))),
    "bomb.zip": zip_with("big", size=20 * MB),
    "many.zip": zip_with(*(f"f{n}" for n in range(200))),
    "file-and-folder.tar": tar_with((member("a"), b"x"), (member("a/b"), b"x")),
    "garbage.zip": b"not a zip at all",
    "garbage.tar.gz": b"\x1f\x8b\x08garbage",
    "cut.tar": tar_with((member("a"), b"x" * 5000))[:1500],
}


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_hostile_archives_are_refused_and_touch_nothing_outside(tmp_path: Path, name: str) -> None:
    (tmp_path / "inner").mkdir()
    archive = tmp_path / "inner" / name
    archive.write_bytes(HOSTILE[name])
    with pytest.raises(BadArchive):
        unpack(archive, tmp_path / "inner" / "target", LIMITS)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["inner"]
    assert sorted(p.name for p in (tmp_path / "inner").iterdir()) in ([name], sorted([name, "target"]))
    assert not Path("/tmp/evil-absolute").exists()


def test_links_inside_are_kept_and_dangling_ones_left_out(tmp_path: Path) -> None:
    archive = tmp_path / "a.tar"
    archive.write_bytes(
        tar_with(
            (member("bin/real"), b"x"),
            (member("bin/link", tarfile.SYMTYPE, "real"), b""),
            (member("up", tarfile.SYMTYPE, "bin/../bin/real"), b""),
            (member("dangling", tarfile.SYMTYPE, "nowhere"), b""),
            (member("hard", tarfile.LNKTYPE, "bin/real"), b""),
        )
    )
    assert unpack(archive, tmp_path / "t", LIMITS)
    found = sorted(str(p.relative_to(tmp_path / "t")) for p in (tmp_path / "t").rglob("*"))
    assert found == ["bin", "bin/link", "bin/real", "hard", "up"]
    assert (tmp_path / "t" / "up").read_bytes() == b"x"


@pytest.mark.parametrize("pattern", ["(a+)+b", "(?:a|b)*c", r"(a)\1", "(", "x" * 2000, "a*b*c*d*e"])
def test_patterns_that_could_take_for_ever_are_refused(tmp_path: Path, pattern: str) -> None:
    archive = tmp_path / "a.jar"
    archive.write_bytes(zip_with("x"))
    with pytest.raises(BadArchive):
        unpack(archive, tmp_path / "t", LIMITS, pattern=pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        *(r"lib/[a-z&&[^b]]+\.jar", r"lib/[a-z&&b]\.jar", r"lib/[a[b]]\.jar", r"lib/[^x[b]]\.jar", r"[]\]&&a].*"),
        *(
            r"lib/\p{Lower}\.jar",
            r"\Qlib/a.jar\E",
            r"lib/(?<n>a)\.jar",
            r"lib/a\v*",
            r"(?x) lib/a.jar",
            r"(?ix)a",
            "(?u)a",
        ),
        *(r"\h+", r"\x{61}", r"lib/a\.jar\z"),
    ],
)
def test_patterns_that_java_reads_otherwise_are_refused(tmp_path: Path, pattern: str) -> None:
    archive = tmp_path / "a.jar"
    archive.write_bytes(zip_with("lib/a.jar"))
    with pytest.raises(BadArchive, match="only what Java and Python share is known here") as refused:
        unpack(archive, tmp_path / "t", LIMITS, pattern=pattern)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        (r"lib/[a-z&]+\.jar", {"lib/a.jar"}),
        (r"lib/[\[\]a]\.jar|x&&y", {"lib/a.jar", "x&&y"}),
        (r"(?i)LIB/.*+", {"lib/a.jar", "lib/\u00e4", "lib/1"}),
        (r"lib/\d|lib/\W", {"lib/1", "lib/\u00e4"}),  # Java's \w has ASCII letters alone
        (r"(?:lib/|x).*", {"lib/a.jar", "lib/\u00e4", "lib/1", "x&&y"}),
    ],
)
def test_patterns_that_java_and_python_share(tmp_path: Path, pattern: str, found: set[str]) -> None:
    archive = tmp_path / "a.jar"
    archive.write_bytes(zip_with("lib/a.jar", "lib/\u00e4", "lib/1", "x&&y"))
    assert unpack(archive, tmp_path / "t", LIMITS, pattern=pattern)
    assert {str(p.relative_to(tmp_path / "t")) for p in (tmp_path / "t").rglob("*") if p.is_file()} == found
