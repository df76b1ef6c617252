"""Which files a job reads and how they are divided."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yaqd.config import Configuration
from yaqd.mapreduce import InputFormat
from yaqd.storage import (
    BlockLocation,
    CorruptFile,
    FileStatus,
    InputSplit,
    NotAFile,
    PathNotFound,
    StorageError,
    compute_splits,
    compute_streaming_splits,
    list_inputs,
)
from yaqd.storage.splits import _pieces

TEXT = InputFormat.parse("text")
CONF = Configuration.load(environ={})
RECURSIVE = "mapreduce.input.fileinputformat.input.dir.recursive"
MIN = "mapreduce.input.fileinputformat.split.minsize"
MAX = "mapreduce.input.fileinputformat.split.maxsize"


def tree(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x" * 10)


def names(root: Path, *inputs: str, **settings: str) -> list[str]:
    conf = CONF.with_overrides({RECURSIVE: "true"} if settings else {})
    prefix = f"file://{root}/"
    return [status.path.removeprefix(prefix) for status in list_inputs([f"{root}/{item}" for item in inputs], conf)]


def test_hidden_files_are_skipped_in_folders_and_patterns(tmp_path: Path) -> None:
    tree(tmp_path, "in/b", "in/a", "in/_SUCCESS", "in/.x.crc")
    assert names(tmp_path, "in") == ["in/a", "in/b"]
    assert names(tmp_path, "in/*") == ["in/a", "in/b"]
    assert names(tmp_path, "in/_SUCCESS") == ["in/_SUCCESS"]


def test_patterns(tmp_path: Path) -> None:
    tree(tmp_path, "2024/01/a", "2024/02/a", "2025/01/b", "2025/01/[x]", "2026/c")
    assert names(tmp_path, "2024/*/a") == ["2024/01/a", "2024/02/a"]
    assert names(tmp_path, "202[45]/01/?") == ["2024/01/a", "2025/01/b"]
    assert names(tmp_path, "202[^45]/*") == ["2026/c"]
    assert names(tmp_path, "{2024,2025}/{01,02}/{a,b}") == ["2024/01/a", "2024/02/a", "2025/01/b"]
    assert names(tmp_path, "2024/0*", "2026") == ["2024/01/a", "2024/02/a", "2026/c"]
    assert names(tmp_path, "2025/01/[x]") == ["2025/01/[x]"]
    assert names(tmp_path, "2026/c", "2026/c") == ["2026/c", "2026/c"]


def test_missing_input_is_one_line(tmp_path: Path) -> None:
    tree(tmp_path, "a")
    with pytest.raises(PathNotFound, match=r"input path file://.*/none does not exist: check the path"):
        names(tmp_path, "a", "none")
    with pytest.raises(PathNotFound, match=r"none\* matches no file"):
        names(tmp_path, "none*")
    with pytest.raises(PathNotFound):
        names(tmp_path, "a/b*/c")
    with pytest.raises(StorageError, match="no input path given"):
        list_inputs([], CONF)
    with pytest.raises(StorageError, match="too many alternatives"):
        names(tmp_path, "{a,b}" * 12)


def test_folders_in_folders(tmp_path: Path) -> None:
    tree(tmp_path, "in/a", "in/d/b", "in/d/e/c", "in/_d/x")
    with pytest.raises(NotAFile, match=r"holds a folder, d: set .*recursive=true to read it, or .*subdirs=true"):
        names(tmp_path, "in")
    assert names(tmp_path, "in", recursive="true") == ["in/a", "in/d/b", "in/d/e/c"]
    skipping = CONF.with_overrides({"mapreduce.input.fileinputformat.input.dir.nonrecursive.ignore.subdirs": "true"})
    assert len(list_inputs([f"{tmp_path}/in"], skipping)) == 1
    (tmp_path / "in" / "d" / "loop").symlink_to(tmp_path / "in")
    (tmp_path / "in" / "gone").symlink_to(tmp_path / "nowhere")
    (tmp_path / "in" / "self").symlink_to(tmp_path / "in" / "self")
    assert names(tmp_path, "in", recursive="true") == ["in/a", "in/d/b", "in/d/e/c"]


def splits(tmp_path: Path, length: int, kind: str = "text", **settings: str) -> list[tuple[int, int]]:
    (tmp_path / "f").write_bytes(b"x" * length)
    conf = CONF.with_overrides({{"least": MIN, "most": MAX}[key]: value for key, value in settings.items()})
    found = compute_splits([f"{tmp_path}/f"], InputFormat.parse(kind), conf)
    return sorted((split.start, split.length) for split in found)


def test_split_sizes_follow_hadoops_rule(tmp_path: Path) -> None:
    assert splits(tmp_path, 100) == [(0, 100)]
    assert splits(tmp_path, 100, most="40") == [(0, 40), (40, 40), (80, 20)]
    # the rest of 44 is within the slop of 1.1, the rest of 45 is not
    assert splits(tmp_path, 84, most="40") == [(0, 40), (40, 44)]
    assert splits(tmp_path, 85, most="40") == [(0, 40), (40, 40), (80, 5)]
    assert splits(tmp_path, 100, most="40", least="60") == [(0, 60), (60, 40)]
    assert splits(tmp_path, 0) == []
    assert splits(tmp_path, 70, "fixed:7", most="20") == [(0, 14), (14, 14), (28, 14), (42, 14), (56, 14)]
    assert splits(tmp_path, 70, "fixed:35", most="20") == [(0, 35), (35, 35)]


def test_a_broken_record_file_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(CorruptFile, match="has 71 bytes, which is no multiple of its 7-byte records"):
        splits(tmp_path, 71, "fixed:7")


def test_compressed_files_are_one_split(tmp_path: Path) -> None:
    (tmp_path / "f.gz").write_bytes(b"x" * 100)
    found = compute_splits([f"{tmp_path}/f.gz"], TEXT, CONF.with_overrides({MAX: "10"}))
    assert [(split.start, split.length) for split in found] == [(0, 100)]


def test_small_files_share_splits(tmp_path: Path) -> None:
    tree(tmp_path, *(f"in/{number:02}" for number in range(25)))
    (tmp_path / "in" / "large").write_bytes(b"x" * 250)
    conf = CONF.with_overrides({MAX: "100"})
    found = compute_splits([f"{tmp_path}/in"], TEXT, conf)
    assert [len(split.ranges) for split in found] == [10, 10, 1, 1, 5, 1]
    assert sum(split.length for split in found) == 500
    alone = compute_splits([f"{tmp_path}/in"], TEXT, conf.with_overrides({"yaq.input.combine-small-files": "false"}))
    assert len(alone) == 28 and all(len(split.ranges) == 1 for split in alone)
    assert str(found[0]).endswith("/in/00:0+10 and 9 more")
    again = [InputSplit.from_json(json.loads(json.dumps(split.to_json()))) for split in found]
    assert again == found


class Blocks:
    """Answers where blocks are, as a NameNode would."""

    def __init__(self, blocks: list[BlockLocation]) -> None:
        self._blocks = blocks

    def block_locations(self, path: str, start: int, length: int) -> list[BlockLocation]:
        return self._blocks


def test_hosts_with_most_of_a_split_come_first() -> None:
    blocks = [
        BlockLocation(0, 100, ("a", "b")),
        BlockLocation(100, 100, ("b", "c")),
        BlockLocation(200, 50, ("c", "d")),
    ]
    status = FileStatus("hdfs://n/f", 250, False, 0, 100, "u", "g", 0o644)
    pieces = _pieces(Blocks(blocks), status, 150, TEXT)  # type: ignore[arg-type]
    assert [(piece.range.start, piece.hosts) for piece in pieces] == [(0, ("b", "a", "c")), (150, ("c", "b", "d"))]


@given(st.integers(1, 10_000), st.integers(1, 500), st.sampled_from(["text", "fixed:1", "fixed:13"]))
def test_pieces_cover_the_file_once(length: int, size: int, kind: str) -> None:
    record = InputFormat.parse(kind)
    length *= max(1, record.record_bytes)
    status = FileStatus("hdfs://n/f", length, False, 0, size, "u", "g", 0o644)
    pieces = [piece.range for piece in _pieces(Blocks([]), status, size, record)]  # type: ignore[arg-type]
    at = 0
    for piece in pieces:
        assert piece.start == at and piece.length > 0
        at += piece.length
    assert at == length
    assert all(piece.length <= max(size, record.record_bytes) * 1.1 for piece in pieces)


def streaming_splits(root: Path, **settings: str) -> list[tuple[str, int, int]]:
    found = compute_streaming_splits([f"{root}/in"], CONF.with_overrides(settings))
    assert all(len(split.ranges) == 1 for split in found)
    return [(split.path.rpartition("/")[2], split.start, split.length) for split in found]


def test_scripts_get_each_file_for_itself_by_hadoops_older_rule(tmp_path: Path) -> None:
    """What org.apache.hadoop.mapred.FileInputFormat makes of these files."""
    (tmp_path / "in").mkdir()
    for name, size in (("a", 3928), ("b", 30), ("c.gz", 212), ("empty", 0), ("long", 5006)):
        (tmp_path / "in" / name).write_bytes(b"x" * size)
    small = [("c.gz", 0, 212), ("b", 0, 30), ("empty", 0, 0)]
    assert streaming_splits(tmp_path) == [("long", 0, 5006), ("a", 0, 3928), *small]
    assert streaming_splits(tmp_path, **{"mapreduce.job.maps": "0"})[0] == ("long", 0, 5006)
    five = streaming_splits(tmp_path, **{"mapreduce.job.maps": "5"})
    assert five[:5] == [
        ("a", 0, 1835),
        ("a", 1835, 1835),
        ("long", 0, 1835),
        ("long", 1835, 1835),
        ("long", 3670, 1336),
    ]
    least = streaming_splits(tmp_path, **{"mapreduce.job.maps": "7", MIN: "2000"})
    assert [length for _, _, length in least] == [2000, 2000, 2000, 1928, 1006, 212, 30, 0]
    assert streaming_splits(tmp_path, **{MAX: "10"}) == streaming_splits(tmp_path)
