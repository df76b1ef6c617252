"""Checkpoints on storage: whole, the last two, or passed over."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yaqd.config import Configuration
from yaqd.storage import CorruptFile, StorageError, get_filesystem
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


def iterations(path: Path) -> list[int]:
    return sorted(int(p.name.removeprefix("checkpoint-")) for p in path.iterdir() if p.name[0] != ".")


def cut(path: Path, iteration: int) -> None:
    file = path / f"checkpoint-{iteration:012d}"
    file.write_bytes(file.read_bytes()[:-1])


def save_all(folder: CheckpointFolder, *those: int) -> None:
    for iteration in those:
        folder.save(Checkpoint(iteration, [b"%d" % iteration]))


@pytest.mark.parametrize("is_loaded", [True, False])
def test_damaged_ones_are_not_among_the_two_that_are_kept(tmp_path: Path, is_loaded: bool) -> None:
    save_all(folder_in(tmp_path), 100, 110)
    cut(tmp_path, 100)
    cut(tmp_path, 110)
    folder = folder_in(tmp_path)
    if is_loaded:
        assert folder.last()[0] is None
    save_all(folder, 5)
    assert iterations(tmp_path) == [5]
    save_all(folder, 10, 15, 20)
    assert iterations(tmp_path) == [15, 20]


def test_beside_a_damaged_one_two_whole_ones_are_kept(tmp_path: Path) -> None:
    save_all(folder_in(tmp_path), 100, 110)
    cut(tmp_path, 110)
    folder = folder_in(tmp_path)
    last, _ = folder.last()
    assert last is not None and last.iteration == 100
    save_all(folder, 105)
    assert iterations(tmp_path) == [100, 105]
    save_all(folder, 110)
    assert iterations(tmp_path) == [105, 110]


def test_one_that_its_owner_cannot_use_is_passed_over_and_goes(tmp_path: Path) -> None:
    def read(checkpoint: Checkpoint) -> int:
        if checkpoint.iteration > 100:
            raise ValueError("not mine")
        return checkpoint.iteration

    save_all(folder_in(tmp_path), 100, 110)
    folder = folder_in(tmp_path)
    found, [line] = folder.last_as(read)
    assert found == 100 and line.endswith("checkpoint-000000000110: not mine")
    save_all(folder, 101)
    assert iterations(tmp_path) == [100, 101]


class Storage(LocalFileSystem):
    """Does not answer reads while `is_silent`, reads short where `is_short`, and dies before its change `dies_at`."""

    def __init__(self) -> None:
        super().__init__(Configuration.load(None))
        self.is_silent = self.is_short = False
        self.dies_at = self.changes = 0

    def open_range(self, path: str, start: int, length: int | None = None) -> Iterator[bytes]:
        if self.is_silent:
            raise StorageError(f"{path}: no answer", path=path)
        whole = b"".join(super().open_range(path, start, length))
        yield whole[:-1] if self.is_short else whole

    def delete(self, path: str, recursive: bool = False) -> bool:
        self.changes += 1
        if self.changes == self.dies_at:
            raise KeyboardInterrupt
        return super().delete(path, recursive)


@pytest.mark.parametrize("fault", ["is_silent", "is_short"])
def test_one_that_cannot_be_read_now_stays(tmp_path: Path, fault: str) -> None:
    save_all(folder_in(tmp_path), 100, 110)
    storage = Storage()
    setattr(storage, fault, True)
    folder = CheckpointFolder(storage, str(tmp_path), bytes_max=1 << 20)
    with pytest.raises(StorageError):
        folder.last()
    save_all(folder, 5, 10, 15)
    assert iterations(tmp_path) == [10, 15, 100, 110]
    setattr(storage, fault, False)
    save_all(folder, 20)
    assert iterations(tmp_path) == [100, 110]


def test_one_that_is_larger_than_may_be_now_is_not_damaged(tmp_path: Path) -> None:
    folder_in(tmp_path).save(Checkpoint(100, [bytes(900)]))
    folder = folder_in(tmp_path, bytes_max=800)
    found, lines = folder.last()
    assert found is None and len(lines) == 1
    save_all(folder, 1, 2, 3)
    assert iterations(tmp_path) == [2, 3, 100]
    last, _ = folder_in(tmp_path).last()
    assert last is not None and last.iteration == 100


@pytest.mark.parametrize("damaged", [(), (110,), (90,), (90, 100), (90, 100, 110)])
@pytest.mark.parametrize("saved", [5, 105, 110, 120])
def test_whoever_is_killed_between_two_steps_leaves_a_whole_one(
    tmp_path: Path, damaged: tuple[int, ...], saved: int
) -> None:
    for dies_at in range(1, 6):
        path = tmp_path / str(dies_at)
        path.mkdir()
        for iteration in (90, 100, 110):
            (path / f"checkpoint-{iteration:012d}").write_bytes(b"".join(Checkpoint(iteration, [b"x"]).dump()))
        for iteration in damaged:
            cut(path, iteration)
        storage = Storage()
        storage.dies_at = dies_at
        folder = CheckpointFolder(storage, str(path), bytes_max=1 << 20)
        best = folder.last()[0]
        try:
            save_all(folder, saved)
        except KeyboardInterrupt:
            assert storage.changes == dies_at
        last, _ = folder_in(path).last()
        assert last is not None and last.iteration >= max(saved, 0 if best is None else best.iteration)
