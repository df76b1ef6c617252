"""The counts of reads that the rows go by, beside what the kernel was asked for: merged and not, on a small case."""

import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.riffle.seek_rows import SeekServer
from benchmarks.riffle.seek_server import FAN_IN
from benchmarks.shuffle_client import MAPS_PER_REQUEST, fetch_all, write_outputs

REDUCES, BLOCK = 5, 16 << 10
CALLS = "pread64,preadv,preadv2,sendfile,splice"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("strace") is None, reason="counts with strace"),
]


def kernel_reads(log: Path) -> Counter[str]:
    """Reads of data files that the kernel was asked for, by what they are of."""
    found: Counter[str] = Counter()
    for line in log.read_text().splitlines():
        if "resumed" in line or " = 0" in line:
            continue  # counted where it began; the end of a file
        if match := re.search(r"/(output|riffle)/[^>]*\.out>", line):
            found[match[1]] += 1
    return found


@pytest.mark.parametrize("is_merged", [False, True])
def test_the_kernel_was_asked_for_what_is_counted(tmp_path: Path, is_merged: bool) -> None:
    log = tmp_path / "strace.txt"
    strace = ["strace", "-f", "-y", "-e", f"trace={CALLS}", "-o", str(log)]
    with SeekServer(tmp_path, tmp_path, *strace) as server:
        outputs = write_outputs(server.target, 0, FAN_IN, REDUCES, BLOCK)
        target = server.start()
        merge_requests = server.ask("merge")["merge_requests"] if is_merged else 0
        fetch_all(target, outputs, maps_per_request=MAPS_PER_REQUEST, rounds=1)
        counted = server.ask("counts")
    asked = kernel_reads(log)
    if is_merged:
        assert counted["reads"] == asked["riffle"] == REDUCES
        # of the merger's requests, an index of each input and of the merged file go another way, and one is its write
        assert asked["output"] == merge_requests - FAN_IN - 2
        assert asked["output"] == FAN_IN
    else:
        assert counted["reads"] == asked["output"] == FAN_IN * REDUCES
        assert not asked["riffle"]
