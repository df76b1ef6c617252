"""Checkpoints on storage: whole, the last two, or passed over."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yaqd.config import Configuration
from yaqd.storage import CorruptFile, get_filesystem
from yaqd.storage.checkpoints import Checkpoint, CheckpointFolder, CheckpointTooLarge
from yaqd.storage.local import LocalFileSystem


def folder_in(path: Path, bytes_max: int = 1 << 20) -> CheckpointFolder:
    conf = Configuration.load(None)
    return CheckpointFolder(get_filesystem(str(path), conf), str(path), bytes_max=bytes_max)


@given(
    pieces=st.lists(st.binary(max_size=50), max_size=6),
    iteration=st.integers(0, 10**11),
    facts=st.dictionaries(st.text(max_size=5), st.integers(), max_size=3),
)
def test_what_is_written_is_read(pieces: list[bytes], iteration: int, facts: dict[str, int]) -> None:
    checkpoint = Checkpoint(iteration, pieces, facts)
    assert Checkpoint.parse(b"".join(checkpoint.dump()), "x") == checkpoint


def test_the_last_two_are_kept(tmp_path: Path) -> None:
    folder = folder_in(tmp_path)
    assert folder.last() == (None, ())
    for iteration in (1, 2, 10):
        folder.save(Checkpoint(iteration, [b"%d" % iteration]))
    assert sorted(p.name[-2:] for p in tmp_path.iterdir()) == ["02", "10"]
    last, lines = folder.last()
    assert last is not None and (last.iteration, list(last.pieces), lines) == (10, [b"10"], ())


def test_what_a_killed_writer_left_is_removed(tmp_path: Path) -> None:
    folder = folder_in(tmp_path)
    folder.save(Checkpoint(1, [b"1"]))
    writer = LocalFileSystem(Configuration.load(None)).create(f"{tmp_path}/checkpoint-000000000002")
    writer.write(b"half of it")
    (tmp_path / ".other.tmp").touch()
    assert len(list(tmp_path.iterdir())) == 3
    folder.remove_unfinished()
    assert sorted(p.name for p in tmp_path.iterdir()) == [".other.tmp", "checkpoint-000000000001"]
    writer.abort()


def test_every_cut_is_seen_and_the_one_before_serves(tmp_path: Path) -> None:
    folder = folder_in(tmp_path)
    folder.save(Checkpoint(1, [b"first"]))
    folder.save(Checkpoint(2, [b"second", b""]))
    newest = max(tmp_path.iterdir())
    whole = newest.read_bytes()
    for length in range(len(whole)):
        newest.write_bytes(whole[:length])
        last, lines = folder.last()
        assert last is not None and last.iteration == 1
        assert len(lines) == 1 and str(newest) in lines[0]
    for place in range(len(whole)):
        newest.write_bytes(whole[:place] + bytes((whole[place] ^ 1,)) + whole[place + 1 :])
        last, lines = folder.last()
        assert last is not None and last.iteration == 1 and len(lines) == 1


def test_a_sum_that_is_right_does_not_make_it_one() -> None:
    parts = Checkpoint(3, [b"abc"]).dump()
    body = b"".join(parts[:-1]).replace(b"[3]", b"[4]")
    import hashlib

    with pytest.raises(CorruptFile):
        Checkpoint.parse(body + hashlib.sha256(body).digest(), "x")


def test_one_that_is_too_large_leaves_what_is_there(tmp_path: Path) -> None:
    folder = folder_in(tmp_path, bytes_max=1000)
    folder.save(Checkpoint(1, [b"small"]))
    with pytest.raises(CheckpointTooLarge):
        folder.save(Checkpoint(2, [bytes(500)]))
    last, _ = folder.last()
    assert last is not None and last.iteration == 1
