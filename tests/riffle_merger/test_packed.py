"""Files of map outputs on a shared file system: what is written is what is read, merged or not, and nothing else is."""

import random
import struct
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riffle_merger.format.errors import FormatError
from riffle_merger.format.packed import FOOTER_BYTES, Footer, index_of
from riffle_merger.merger.errors import Cancelled, MergeError, NotMergeable
from riffle_merger.plan.choice import MergerChoice
from riffle_merger.remote.merge import Progress, RemoteOrder, merge_remote
from riffle_merger.remote.reader import PackedFile
from riffle_merger.remote.verify import damaged_segments
from tests.examples import examples
from tests.riffle_merger.map_outputs import sealed
from yaqd.config import Configuration
from yaqd.storage import FileSystem, get_filesystem

bodies = st.one_of(st.none(), st.binary(max_size=60))
#: outputs of some maps, each with the same number of partitions
shuffles = st.integers(1, 5).flatmap(
    lambda partitions: st.lists(st.lists(bodies, min_size=partitions, max_size=partitions), min_size=1, max_size=6)
)


@pytest.fixture
def files() -> FileSystem:
    return get_filesystem("file:///", Configuration.load(None, environ={}))


def checksums(*segments: bytes) -> list[int]:
    return [int.from_bytes(segment[-4:], "big") for segment in segments]


def put(folder: Path, name: str, parts: Sequence[bytes | None]) -> list[bytes]:
    segments = [sealed(body) for body in parts]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(
        b"".join(segments) + index_of([name], ([len(s)] for s in segments), map(checksums, segments))
    )
    return segments


def order(folder: Path, names: Sequence[str], window_bytes: int = 1 << 20) -> RemoteOrder:
    return RemoteOrder(f"file://{folder}", "merged", tuple(names), window_bytes)


@settings(max_examples=examples(60), deadline=None)
@given(shuffle=shuffles, window_bytes=st.integers(0, 300))
def test_a_merged_file_has_every_segment_in_its_place(
    tmp_path_factory: pytest.TempPathFactory, shuffle: list[list[bytes | None]], window_bytes: int
) -> None:
    files = get_filesystem("file:///", Configuration.load(None, environ={}))
    folder = tmp_path_factory.mktemp("shared")
    names = [f"attempt_{number}" for number in range(len(shuffle))]
    written = [put(folder, name, parts) for name, parts in zip(names, shuffle, strict=True)]
    done = merge_remote(files, order(folder, names, window_bytes), Progress())
    assert done.partitions == len(shuffle[0])
    file = PackedFile(files, str(folder / "merged"), maps=len(names), partitions=done.partitions)
    assert file.maps == tuple(names)
    for partition in range(done.partitions):
        row = file.row(partition)
        assert row.lengths == tuple(len(segments[partition]) for segments in written)
        assert row.checksums == tuple(checksums(*(segments[partition] for segments in written)))
        assert b"".join(file.stream(row.offset, row.length)) == b"".join(s[partition] for s in written)
    file.close()
    assert sorted(path.name for path in folder.iterdir()) == sorted([*names, "merged"])


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(st.binary(min_size=1, max_size=20), min_size=1, max_size=4), st.data())
def test_an_index_with_one_wrong_byte_is_refused_or_says_the_same(parts: list[bytes], data: st.DataObject) -> None:
    segments = [sealed(body) for body in parts]
    index = index_of(["a", "b"], ([len(s), 0] for s in segments), (checksums(s, b"") for s in segments))
    whole = bytearray(b"".join(segments) + index)
    place = data.draw(st.integers(len(whole) - len(index), len(whole) - 1))
    whole[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises((FormatError, IndexError)):
        footer = Footer.parse(bytes(whole[-FOOTER_BYTES:]), len(whole), name="f")
        footer.parse_names(bytes(whole[footer.names_at :]))
        list(footer.parse_rows(bytes(whole[footer.rows_at : footer.names_at])))


@pytest.mark.parametrize(("maps", "partitions", "names"), [(1 << 31, 1 << 31, 0), (1, 1 << 20, 0), (1, 1, 1 << 31)])
def test_a_footer_that_describes_more_than_the_file_can_hold_is_refused(maps: int, partitions: int, names: int) -> None:
    with pytest.raises(FormatError):
        Footer.parse(struct.pack(">8sIIII", b"YAQPACK2", maps, partitions, names, 0), 1000, name="f")


def damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("window_bytes", [0, 1 << 20])
@pytest.mark.parametrize(
    ("spoil", "kind"),
    [
        (damage, NotMergeable),
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), NotMergeable),
        (lambda path: path.write_bytes(b""), NotMergeable),
        (Path.unlink, MergeError),
        (lambda path: put(path.parent, path.name, [b"x"]), NotMergeable),
    ],
)
def test_a_merge_that_fails_leaves_nothing(
    files: FileSystem, tmp_path: Path, spoil: Callable[[Path], None], kind: type[MergeError], window_bytes: int
) -> None:
    for name in ("a", "b", "c"):
        put(tmp_path, name, [b"some bytes", b"others"])
    spoil(tmp_path / "b")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(kind):
        merge_remote(files, order(tmp_path, ["a", "b", "c"], window_bytes), Progress())
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("window_bytes", [0, 1 << 20])
def test_a_segment_in_anothers_place_is_merged_by_nobody(files: FileSystem, tmp_path: Path, window_bytes: int) -> None:
    """As long as it, and whole in itself."""
    first, second = put(tmp_path, "a", [b"one", b"two"])
    (tmp_path / "a").write_bytes((tmp_path / "a").read_bytes().replace(first + second, second + first))
    put(tmp_path, "b", [b"ten", b"six"])
    with pytest.raises(NotMergeable):
        merge_remote(files, order(tmp_path, ["a", "b"], window_bytes), Progress())
    file = PackedFile(files, str(tmp_path / "a"), maps=1, partitions=2)
    assert list(damaged_segments(file, list(file.rows()))) == [(0, "a"), (1, "a")]
    file.close()


def test_a_cancelled_merge_leaves_nothing_and_no_folder_comes_back(files: FileSystem, tmp_path: Path) -> None:
    put(tmp_path, "a", [b"some bytes"])
    with pytest.raises(Cancelled):
        merge_remote(files, order(tmp_path, ["a"]), Progress(cancelled=True))
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    with pytest.raises(MergeError):
        merge_remote(files, order(tmp_path / "gone", ["a"]), Progress())
    assert not (tmp_path / "gone").exists()


def test_of_two_mergers_the_one_with_the_shorter_queue_and_none_that_failed_lately() -> None:
    choice = MergerChoice[str](random.Random(1).sample)
    assert choice.candidates([], 0.0) == []
    assert choice.shortest({"a": 3, "b": 1}) == "b"
    assert choice.shortest({"a": 3, "b": None}) == "a"
    for _ in range(4):
        choice.sent("b")  # none of which it knew when it was asked
    assert choice.shortest({"a": 3, "b": 1}) == "a"
    choice.failed("a", 10.0)
    assert choice.candidates(["a", "b"], 11.0) == ["b"]
    assert sorted(choice.candidates(["a", "b"], 100.0)) == ["a", "b"]


@pytest.mark.parametrize("mergers", [3, 30])
def test_two_choices_keep_the_longest_queue_shorter_than_chance_does(mergers: int) -> None:
    """Balls into bins, of which many come: the largest stays near the mean with two choices, and drifts with one."""
    longest: dict[int, list[int]] = {1: [], 2: []}
    for asked, found in longest.items():
        for seed in range(20):
            choice = MergerChoice[int](random.Random(seed).sample, asked=asked)
            queues = dict.fromkeys(range(mergers), 0)
            for _ in range(60 * mergers):
                chosen = choice.shortest({merger: queues[merger] for merger in choice.candidates(list(queues), 0.0)})
                assert chosen is not None
                queues[chosen] += 1
            found.append(max(queues.values()))
    assert max(longest[2]) <= 60 + 4
    assert sum(longest[2]) < sum(longest[1]) - 20
