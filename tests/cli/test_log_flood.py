"""The log of a daemon under a flood of warnings."""

import logging
from collections.abc import Iterator

import pytest

from yaqd.cli.log_flood import LINES_PER_MINUTE, FloodGuard, PlainFormatter


class Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


class Log:
    """A logger of its own behind a guard with a clock that the test moves."""

    def __init__(self, name: str) -> None:
        self.now = 0.0
        self.kept = Kept()
        self.kept.addFilter(FloodGuard(lambda: self.now))
        self.logger = logging.getLogger(name)
        self.logger.propagate = False
        self.logger.setLevel(logging.INFO)
        self.logger.addHandler(self.kept)

    @property
    def lines(self) -> list[str]:
        return self.kept.lines


@pytest.fixture
def log() -> Iterator[Log]:
    log = Log("flooded")
    yield log
    log.logger.removeHandler(log.kept)


def test_a_place_that_warns_too_often_is_held_back_and_says_so_later(log: Log) -> None:
    def warn() -> None:
        log.logger.warning("bad thing %d", 7)

    for _ in range(1000):
        warn()
    assert log.lines == ["bad thing 7"] * LINES_PER_MINUTE
    log.logger.warning("another place")
    assert log.lines[-1] == "another place"
    log.now = 61.0
    warn()
    assert log.lines[-1] == f"bad thing 7 ({1000 - LINES_PER_MINUTE} more of these were held back)"


def test_control_characters_are_written_out(log: Log) -> None:
    log.kept.setFormatter(PlainFormatter("%(message)s"))
    log.logger.warning("node %s: gone\n\tsecond line", "\x1b[31m\0\r")
    assert log.lines == ["node \\x1b[31m\\x00\\x0d: gone\n\tsecond line"]


def test_what_the_daemon_does_itself_is_all_there(log: Log) -> None:
    for _ in range(500):
        log.logger.info("container done")
    assert len(log.lines) == 500
