"""What a file on HDFS keeps in memory while it is written."""

import tracemalloc

import pytest

from yaqd.storage.hdfs.web import WebHdfsFile
from yaqd.storage.hdfs.write import SurvivingFile

KEPT = 4 << 20


class _Sink:
    """Takes all."""

    def __init__(self) -> None:
        self.length = 0

    def write(self, data: bytes) -> None:
        self.length += len(data)

    def close(self) -> None:
        pass


class _NoRescue:
    def again(self) -> WebHdfsFile:
        raise AssertionError

    def rest(self, wanted: int) -> tuple[int, WebHdfsFile]:
        raise AssertionError


@pytest.mark.slow
@pytest.mark.parametrize("size", [20, 70_000, 1 << 20, 30 << 20])
def test_memory_is_bounded_however_it_is_written(size: int) -> None:
    sink = _Sink()
    file = SurvivingFile(sink, _NoRescue(), lambda error: False, KEPT)
    data = bytearray(size)
    writes = max(2, min(60 << 20, 300_000 * size) // size)
    tracemalloc.start()
    try:
        for _ in range(writes):
            file.write(data)
        file.close()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert sink.length == writes * size
    # what is kept, a piece that is put together and its copy
    assert peak < KEPT + (5 << 20) // 2
