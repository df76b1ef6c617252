"""Files on storage, read as Python's own files are."""

import io
import os
from pathlib import Path

import numpy as np
import pytest

from yaqd.config import Configuration
from yaqd.storage import PathNotFound, get_filesystem, seekable
from yaqd.storage.filesystem import PositionedReader
from yaqd.storage.seekable import open_seekable

CONF = Configuration.load(None)


class _Remote:
    """A file system elsewhere, whose files are in fact here."""

    def open_at(self, path: str) -> PositionedReader:
        return get_filesystem("file:///", CONF).open_at(path.removeprefix("hdfs://far"))


@pytest.fixture(autouse=True)
def _remote(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seekable, "get_filesystem", lambda path, conf: _Remote())


def test_it_reads_what_a_file_here_reads(tmp_path: Path) -> None:
    data = os.urandom((9 << 20) + 7)  # more than two requests
    (tmp_path / "data").write_bytes(data)
    for path in (f"{tmp_path}/data", f"file://{tmp_path}/data", f"hdfs://far{tmp_path}/data"):
        with open_seekable(path, CONF) as file:
            assert file.read(3) == data[:3] and file.tell() == 3
            assert file.seek(-5, io.SEEK_END) == len(data) - 5
            assert file.read(100) == data[-5:] and file.read() == b""
            assert file.seek(4 << 20) == 4 << 20 and file.seek(10, io.SEEK_CUR) == (4 << 20) + 10
            assert file.read() == data[(4 << 20) + 10 :]
            file.seek(len(data) + 10)
            assert file.read(1) == b""
            with pytest.raises((ValueError, OSError)):
                file.seek(-1)


def test_libraries_take_it(tmp_path: Path) -> None:
    table = np.arange(600_000.0).reshape(-1, 6)
    np.save(tmp_path / "table.npy", table)
    with open_seekable(f"hdfs://far{tmp_path}/table.npy", CONF) as file:
        assert (np.load(file) == table).all()
    (tmp_path / "lines").write_text("1,2\n3,4\n")
    with open_seekable(f"hdfs://far{tmp_path}/lines", CONF) as file:
        assert list(file) == [b"1,2\n", b"3,4\n"]


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(PathNotFound):
        open_seekable(f"hdfs://far{tmp_path}/none", CONF)
    with pytest.raises(FileNotFoundError):
        open_seekable(f"{tmp_path}/none", CONF)
