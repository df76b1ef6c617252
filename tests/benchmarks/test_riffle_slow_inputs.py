"""Inputs of the slow disk's jobs are links where they can be, and copies elsewhere."""

import errno
import os
from pathlib import Path

import pytest

from benchmarks.riffle.slow_rows import link_or_copy


def test_an_input_is_a_link_on_the_same_file_system(tmp_path: Path) -> None:
    (tmp_path / "made").write_bytes(b"lines")
    link_or_copy(tmp_path / "made", tmp_path / "input")
    assert (tmp_path / "input").samefile(tmp_path / "made")


def test_an_input_from_another_file_system_is_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    monkeypatch.setattr(os, "link", refuse)
    (tmp_path / "made").write_bytes(b"lines")
    link_or_copy(tmp_path / "made", tmp_path / "input")
    assert (tmp_path / "input").read_bytes() == b"lines"
    assert not (tmp_path / "input").samefile(tmp_path / "made")


def test_an_input_that_is_there_already_is_an_error(tmp_path: Path) -> None:
    for name in ("made", "input"):
        (tmp_path / name).write_bytes(name.encode())
    with pytest.raises(FileExistsError):
        link_or_copy(tmp_path / "made", tmp_path / "input")
    assert (tmp_path / "input").read_bytes() == b"input"
