"""What a merger finds of its disk, and tells."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from riffle_merger.merger.disk import DiskFacts, try_disk

NUMBERS = st.integers(0, (1 << 64) - 1)


@given(st.integers(0, (1 << 32) - 1), st.integers(1, (1 << 64) - 1), NUMBERS)
def test_facts_are_told_in_twenty_bytes(seek_us: int, bytes_per_s: int, available_bytes: int) -> None:
    facts = DiskFacts(seek_us, bytes_per_s, available_bytes)
    assert len(facts.pack()) == 20 and DiskFacts.unpack(facts.pack()) == facts


@given(st.binary(max_size=40))
def test_what_is_no_fact_is_none(data: bytes) -> None:
    facts = DiskFacts.unpack(data)
    assert facts is None or (facts.pack() == data and facts.bytes_per_s)


def test_a_disk_is_tried_and_nothing_is_left(tmp_path: Path) -> None:
    facts = try_disk(tmp_path, 123)
    assert facts is None or (0 < facts.seek_us < 1_000_000 and facts.bytes_per_s > 1_000_000)
    assert facts is None or facts.available_bytes == 123
    assert list(tmp_path.iterdir()) == []
    assert try_disk(tmp_path / "none", 0) is None
    assert try_disk(Path("/proc"), 0) is None
