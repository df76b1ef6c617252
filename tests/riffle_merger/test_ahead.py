"""What a disk is told of before it is read."""

import os

import pytest

from riffle_merger.format.ahead import announce


@pytest.mark.parametrize(("offset", "length"), [(0, 1), (5, 1 << 20), (7, (8 << 20) + 3), (3, 0)])
def test_all_of_a_stretch_is_told_in_pieces_that_the_kernel_takes_whole(
    monkeypatch: pytest.MonkeyPatch, offset: int, length: int
) -> None:
    told: list[tuple[int, int, int]] = []
    monkeypatch.setattr(os, "posix_fadvise", lambda _, at, size, advice: told.append((at, size, advice)))
    announce(9, offset, length)
    assert {advice for _, _, advice in told} <= {os.POSIX_FADV_WILLNEED}
    assert sum(size for _, size, _ in told) == length
    at = offset
    for begin, size, _ in told:
        # a turning disk's largest request, of which the kernel reads no more at a call
        assert begin == at and 0 < size <= 1280 << 10
        at += size
