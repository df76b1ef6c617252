"""Settings of all tests.

No property test fails because the machine is busy (pytest-timeout ends a hanging one). A run without the slow tests
tries some examples of each property, a whole one all.
"""

import gc
import signal
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

from tests.examples import FEW
from tez_adapter.background import leave
from yaqd.model.compiled import is_compiled

settings.register_profile("unhurried", deadline=None)
settings.register_profile("few", deadline=None, max_examples=FEW)
settings.load_profile("unhurried")

#: what numba compiles is compiled once; control groups are the machine's
_ONE_WORKER = {
    "numba": ("tests/sim/stages/", "tests/sim/test_experiments.py"),
    "control groups": ("tests/nm/throttle/",),
}
_STATUS = pytest.StashKey[int]()


@pytest.fixture(autouse=True)
def recounted() -> Iterator[None]:
    """Recounts the schedulers that a test made and did not recount itself."""
    yield
    if (worlds := sys.modules.get("tests.rm.rm_world")) is not None:
        worlds.recount()


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], str]:
    """Write a file of the test's folder; its path."""

    def write_file(name: str, text: str) -> str:
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write_file


def pytest_configure(config: pytest.Config) -> None:
    """Before any test is imported: a property takes these settings when it is defined.

    A shell starts what runs in the background with SIGINT ignored, and processes pass that on: tests of Ctrl-C need it.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if "not slow" in config.option.markexpr:
        settings.load_profile("few")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leaves out what replaces parts of what is compiled."""
    has_compiled = is_compiled()
    for item in items:
        if has_compiled and item.get_closest_marker("interpreted") is not None:
            item.add_marker(pytest.mark.skip(reason="replaces a method of what is compiled here"))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """One test at a time to each worker, but some kinds to one worker each.

    Groups as xdist has them (`xdist_group`) come to nothing with pytest 9.2: it no longer reads the names that xdist
    3.8 gives to tests.
    """
    scheduler: Any = LoadScopeScheduling(config, log)
    scheduler._split_scope = _group_of
    return scheduler


def _group_of(nodeid: str) -> str:
    return next((kind for kind, places in _ONE_WORKER.items() if nodeid.startswith(places)), nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What imports and collects leaves little garbage, and goes through all that there is again and again for it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Takes the thousands of tests out of what the garbage collector goes through again and again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    session.config.stash[_STATUS] = int(exitstatus)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Some tests leave a thread behind that waits for a file system for ever; it must not come back meanwhile."""
    leave(config.stash.get(_STATUS, 0))
