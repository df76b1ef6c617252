"""Libraries that tasks share: which imports of a program those are, and that no task can tell."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tez_adapter.client.local import run_local
from tez_adapter.tasks import shared_imports
from tez_adapter.tasks.forked import run_in_child
from tez_adapter.tasks.local_tasks import LocalTasks, Work, work_of
from tez_adapter.tasks.shared_imports import SHARE_KEY, SharedImports, leading_imports
from yaqd.config import Configuration
from yaqd.mapreduce import Job, load_job

APART = {"yaq.input.combine-small-files": "false"}
CONF = Configuration.load(environ={}).with_overrides(APART)
PLAIN = "VALUE = 1\n"


@pytest.fixture
def libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that counts as site-packages."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    known = shared_imports._library_folders()
    monkeypatch.setattr(shared_imports, "_library_folders", lambda: (*known, f"{folder}/"))
    monkeypatch.syspath_prepend(str(folder))
    yield folder


def tried(script: Path, prepare: Callable[[], object] = lambda: None, *, is_strict: bool = True) -> list[str]:
    """The modules that a task finds fit to be shared."""

    def work() -> bytes:
        prepare()
        shared = SharedImports(is_on=True, is_strict=is_strict)
        shared.try_out(script)
        return shared.with_report(b"outcome")

    outcome = run_in_child(work).outcome
    assert outcome is not None
    learned = SharedImports(is_on=True)
    assert learned.learn(outcome) == b"outcome"
    assert learned._fit is not None
    return [name for name, _ in learned._fit]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('"""Says what."""\nimport a.b as c, d\nfrom e import f, g\n', [("a.b", ()), ("d", ()), ("e", ("f", "g"))]),
        ("import a\nimport os; os.environ['X'] = '1'\nimport b\n", [("a", ()), ("os", ())]),
        ("import a\nfrom . import b\nimport c\n", [("a", ())]),
        ("try:\n    import a\nexcept ImportError:\n    a = None\n", []),
        ("import a\n'no docstring'\nimport b\n", [("a", ())]),
        ("import (", []),
        ("\0", []),
    ],
)
def test_what_a_program_imports_before_it_does_anything_else(text: str, found: list[Any], tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(text)
    assert leading_imports(tmp_path / "job.py") == found
    assert leading_imports(tmp_path / "absent.py") == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()",
        "import os; LEFT = os.open('/dev/null', os.O_RDONLY)",
        "import os; os.environ['LEFT'] = '1'",
        "import os; os.chdir('/')",
        "import os; os.umask(0o177)",
        "import signal; signal.signal(signal.SIGUSR1, signal.SIG_IGN)",
        "import sys; sys.path.append('/left')",
        "import random; OWN = random.Random()",
        "import numpy.random; OWN = numpy.random.default_rng()",
        "import of_the_job",
        "raise ImportError('cannot be')",
        "raise SystemExit(3)",
    ],
)
def test_a_library_that_marks_its_process_is_left_to_each_task(text: str, libraries: Path, tmp_path: Path) -> None:
    for name in ("marks_before", "marks_after"):
        (libraries / f"{name}.py").write_text(PLAIN)
    (libraries / "marks_all.py").write_text(text)
    shipped = tmp_path / "shipped"
    shipped.mkdir()
    (shipped / "of_the_job.py").write_text(PLAIN)
    script = tmp_path / "job.py"
    script.write_text("import marks_before\nimport marks_all\nimport marks_after\n")
    assert tried(script, lambda: sys.path.insert(0, str(shipped))) == ["marks_before"]


@pytest.mark.parametrize(
    ("text", "is_shared"),
    [
        ("import os; os.environ['LEFT'] = '1'", True),
        ("import numpy.random; OWN = numpy.random.default_rng()", True),
        ("import random; OWN = random.Random()", True),
        ("import sys, types; sys.modules['marks.part'] = types.ModuleType('marks.part')", True),
        ("import os; os.environ['PATH'] = 'changed'", False),
        ("import os; LEFT = os.open('/dev/null', os.O_RDONLY)", False),
        ("import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()", False),
        ("import signal; signal.signal(signal.SIGUSR1, signal.SIG_IGN)", False),
        ("import of_the_job", False),
    ],
)
def test_trials_share_what_leaves_a_process_that_can_fork(
    text: str, is_shared: bool, libraries: Path, tmp_path: Path
) -> None:
    (libraries / "marks.py").write_text(text)
    shipped = tmp_path / "shipped"
    shipped.mkdir()
    (shipped / "of_the_job.py").write_text(PLAIN)
    script = tmp_path / "job.py"
    script.write_text("import marks\n")
    found = tried(script, lambda: sys.path.insert(0, str(shipped)), is_strict=False)
    assert found == (["marks"] if is_shared else [])


def test_a_module_that_the_job_ships_under_a_librarys_name_is_the_jobs(libraries: Path, tmp_path: Path) -> None:
    shipped = tmp_path / "shipped"
    shipped.mkdir()
    mark = tmp_path / "mark"
    (libraries / "shadowed.py").write_text(PLAIN)
    script = tmp_path / "job.py"
    script.write_text("import shadowed\n")
    assert tried(script) == ["shadowed"]
    (shipped / "shadowed.py").write_text(f"open({str(mark)!r}, 'w')\n")
    assert tried(script, lambda: sys.path.insert(0, str(shipped))) == []
    assert not mark.exists()  # nothing of the job's runs before the program itself does


def test_who_forks_imports_libraries_alone(libraries: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a task reports."""
    (tmp_path / "of_the_job.py").write_text(f"open({str(tmp_path / 'mark')!r}, 'w')\n")
    (libraries / "of_the_library.py").write_text(PLAIN)

    def work() -> bytes:
        sys.path.insert(0, str(tmp_path))
        before = sys.path[:]
        shared = SharedImports(is_on=True)
        report = json.dumps([["of_the_library", []], ["of_the_job", []]]).encode()
        shared.learn(shared_imports._LENGTH.pack(len(report)) + report)
        shared.load()
        return json.dumps(["of_the_library" in sys.modules, "of_the_job" in sys.modules, sys.path == before]).encode()

    assert json.loads(run_in_child(work).outcome or b"") == [True, False, True]
    assert not (tmp_path / "mark").exists()


PROGRAM = """
import shared_by_all
from yaqd.mapreduce import Job
class Shares(Job):
    def map(self, key, value):
        yield shared_by_all.HERE.pop() if shared_by_all.HERE else "left empty", 1
    def reduce(self, key, values):
        yield key, sum(values)
"""


@pytest.mark.parametrize("shares", [True, False])
def test_tasks_share_a_library_and_none_sees_what_another_did_to_it(
    shares: bool, libraries: Path, tmp_path: Path
) -> None:
    loads = tmp_path / "loads"
    (libraries / "shared_by_all.py").write_text(f"HERE = ['fresh']\nopen({str(loads)!r}, 'a').write('x')\n")
    script = tmp_path / "job.py"
    script.write_text(PROGRAM)
    (tmp_path / "in").mkdir()
    for number in range(4):
        (tmp_path / "in" / f"f{number}").write_text("a\n")

    def load(before: Callable[[Path], None]) -> Work:
        return work_of(load_job(script, before=before), {})

    conf = CONF.with_overrides({SHARE_KEY: str(shares).lower()})

    class Shares(Job):  # what the job's own process needs to know of the program
        pass

    with LocalTasks(load, conf) as tasks:
        run_local(Shares, [f"{tmp_path}/in"], f"{tmp_path}/out", conf, tasks=tasks)
    assert (tmp_path / "out/part-r-00000").read_text() == "fresh\t4\n"
    # the first task and who forks the others; or each of four maps and a reduce
    assert len(loads.read_text()) == (2 if shares else 5)
