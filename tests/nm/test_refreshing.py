"""What the node's log says of files that were read again."""

import asyncio
import logging
from pathlib import Path

import pytest

from nm.node_queue import NodeQueueSettings
from nm.refreshing import Refreshing
from tests.nm.nm_cluster import node_configuration


@pytest.mark.parametrize(
    ("order", "words"),
    [
        ("fifo", "opportunistic containers start by arrival (yaq.nm.queue.order) and guaranteed ones by arrival"),
        ("srjf", "opportunistic containers start by srjf, first those that have waited 7 s (yaq.nm.queue.order)"),
    ],
)
async def test_what_was_read_is_said_in_words(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, order: str, words: str
) -> None:
    conf = node_configuration(tmp_path, 1, {"yaq.nm.queue.order": order, "yaq.nm.queue.starve-ms": "7s"})
    told: list[NodeQueueSettings] = []
    done = asyncio.Event()
    refreshing = Refreshing(conf, None, queue_changed=told.append, wait_changed=lambda _: done.set())
    with caplog.at_level(logging.INFO, "nm.refreshing"):
        refreshing.told(1)
        async with asyncio.timeout(10):
            await done.wait()
        (line,) = [record.getMessage() for record in caplog.records]
    await refreshing.stop()
    assert line.startswith("the files were read again: where the ResourceManager does not fill this node's queue, ")
    assert words in line and line.endswith("waits are estimated by resources (yaq.nm.queue.wait-estimate)")
    assert len(told) == 1
