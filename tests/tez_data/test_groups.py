"""Groups of equal keys: what is read of them when, and what is not."""

import itertools
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riffle_merger.format.columns import Columns
from tez_adapter.data import groups as groups_module
from tez_adapter.data.groups import Groups
from yaqd.mapreduce.errors import JobError

Group = tuple[bytes, list[bytes]]


def batches(groups: list[Group], size: int) -> Iterator[Columns]:
    pairs = [(key, value) for key, values in groups for value in values]
    for start in range(0, len(pairs), size):
        batch = pairs[start : start + size]
        yield Columns.from_lists([key for key, _ in batch], [value for _, value in batch])


def groups_of(counts: list[int]) -> list[Group]:
    return [(b"k%03d" % key, [b"%d" % value for value in range(count)]) for key, count in enumerate(counts)]


counts = st.lists(st.integers(1, 9), max_size=12)


@given(counts, st.integers(1, 6))
def test_each_group_has_its_values_whatever_was_read_of_the_one_before(counts: list[int], size: int) -> None:
    expected = groups_of(counts)
    for read in (0, 1, 99):
        found = []
        for key, values in Groups(batches(expected, size)):
            found.append((key, list(itertools.islice(values, read))))
        assert found == [(key, values[:read]) for key, values in expected]


@given(counts, st.integers(1, 6), st.booleans(), st.data())
def test_values_that_are_kept_are_all_there_or_refused(
    counts: list[int], size: int, is_begun: bool, data: st.DataObject
) -> None:
    """Read while other groups are, or when all are over."""
    expected = groups_of(counts)
    kept: list[tuple[bytes, list[bytes], Iterator[bytes]]] = []
    found: dict[bytes, list[bytes]] = {}

    def read_one() -> None:
        key, begun, values = kept.pop(0)
        try:
            found[key] = begun + list(values)
        except JobError as error:
            assert "keep them as list(values)" in str(error)

    for key, values in Groups(batches(expected, size)):
        kept.append((key, list(itertools.islice(values, int(is_begun))), values))
        if len(kept) > 1 and data.draw(st.booleans()):
            read_one()
    while kept:
        read_one()
    whole = dict(expected)
    assert all(whole[key] == values for key, values in found.items())


def test_values_kept_of_a_large_group_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups_module, "_SLICE_PAIRS", 4)
    kept = [values for _, values in Groups(batches(groups_of([2, 9]), 100))]
    assert list(kept[0]) == [b"0", b"1"]
    with pytest.raises(JobError, match="read after its call had returned"):
        list(kept[1])
