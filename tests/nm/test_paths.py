"""Names that lead out of their folder, given to a live node: refused, and nothing is made, read or removed there."""

import asyncio
import http.client
import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from nm.daemon import NodeManager
from tests.nm.nm_cluster import FakeResourceManager, Master, container_id, launch_context, local_file
from yaqd.model import ExitStatus
from yaqd.proto import yarn_common_pb2 as common

ONE = container_id(1)


@pytest.fixture
def wanted(tmp_path: Path) -> Path:
    (tmp_path / "source").mkdir()
    file = tmp_path / "source" / "file.txt"
    file.write_text("mine")
    return file


@pytest.mark.slow
@pytest.mark.parametrize("link", ["/etc/x", "../x", "../../../../../../tmp/x", "a/../../x", "", ".", "a\nb", "a\0b"])
async def test_a_link_that_leaves_the_container(
    rm: FakeResourceManager, node: NodeManager, master: Master, wanted: Path, link: str
) -> None:
    response = await master.start(ONE, launch_context("true", resources={link: local_file(wanted)}))
    (failure,) = response.failed_requests
    assert "local resource name" in failure.exception.message
    assert not node.runtime.containers
    assert files_named(node.settings.local_dirs[0], "file.txt") == []


@pytest.mark.parametrize("inner", ["shared/file.txt", "shared/new", "./shared//deep/er"])
async def test_a_link_into_what_containers_share(
    rm: FakeResourceManager, node: NodeManager, master: Master, wanted: Path, inner: str
) -> None:
    """`shared` becomes a link to the folder that every container of the node sees."""
    folder = local_file(wanted.parent, visibility=common.PUBLIC)
    response = await master.start(ONE, launch_context("true", resources={"shared": folder, inner: local_file(wanted)}))
    (failure,) = response.failed_requests
    assert "lies inside another, 'shared'" in failure.exception.message
    assert not node.runtime.containers and files_named(wanted.parent, "*") == [wanted]


def files_named(folder: Path, pattern: str) -> list[Path]:
    return list(folder.rglob(pattern))


def made_by_evil(folder: Path) -> list[Path]:
    outside = Path("/tmp/yaqd-test-evil")
    return files_named(folder, "*evil*") + [outside] * outside.exists()


def _tar(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> bytes:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, 0 if link else 4
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        archive.addfile(info, io.BytesIO(b"evil"))
        if link:
            inside = tarfile.TarInfo(f"{name}/evil")
            inside.size = 4
            archive.addfile(inside, io.BytesIO(b"evil"))
    return data.getvalue()


def _zip(name: str) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr(name, b"evil")
    return data.getvalue()


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("up.tar", _tar("../../../../evil")),
        ("root.tar", _tar("/tmp/yaqd-test-evil")),
        ("link.tar", _tar("out", tarfile.SYMTYPE, "../../../..")),
        ("hard.tar", _tar("passwd", tarfile.LNKTYPE, "/etc/passwd")),
        ("up.zip", _zip("../../../../evil")),
        ("root.zip", _zip("/tmp/yaqd-test-evil")),
        ("nul.zip", _zip("a/../../evil")),
    ],
)
async def test_an_archive_that_leaves_its_folder_fails_the_container(
    rm: FakeResourceManager, node: NodeManager, master: Master, tmp_path: Path, wanted: Path, name: str, data: bytes
) -> None:
    packed = wanted.parent / name
    packed.write_bytes(data)
    resources = {"packed": local_file(packed, type=common.ARCHIVE)}
    await master.run(ONE, launch_context("cat packed/*", resources=resources))
    end = await rm.end_of(ONE)
    assert end.exit_status == ExitStatus.INVALID, end.diagnostics
    assert name in end.diagnostics
    assert made_by_evil(tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [
        "/../../../../etc/passwd",
        "/node/containerlogs/{c}/alice/../../../../../../../etc/passwd",
        "/node/containerlogs/{c}/alice/%2e%2e%2f%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "/node/containerlogs/..%2f{c}/alice/stdout",
        "/node/containerlogs/{c}/..%2f..%2fetc/passwd",
        "/node/containerlogs/{c}/alice//etc/passwd",
        "/node/containerlogs/{c}/alice/stdout%00.txt",
        "/ws/v1/node/containers/{c}/logs/..",
        "/ws/v1/node/containers/{c}/logs/%2fetc%2fpasswd",
        "/ws/v1/node/containerlogs/{c}/..%5c..%5cpasswd",
        "/ws/v1/node/containers/../../../../etc/passwd",
        "/ws/v1/node/apps/..%2f..",
    ],
)
async def test_a_log_request_that_leaves_the_logs(
    rm: FakeResourceManager, node: NodeManager, master: Master, path: str
) -> None:
    await master.run(ONE, launch_context("echo secret"))
    await rm.end_of(ONE)

    def fetch() -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(*node.web_address, timeout=10)
        connection.request("GET", path.format(c=ONE))
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, body

    status, body = await asyncio.to_thread(fetch)
    assert status in (400, 401, 403, 404), (status, body)
    assert b"root:" not in body and b"Traceback" not in body
