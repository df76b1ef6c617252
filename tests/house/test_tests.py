"""What holds for the files of the tests themselves."""

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from tests.house.house_sources import parse, statements

TESTS = Path(__file__).parents[1]


def imported(source: str) -> Iterator[str]:
    """Yields each module that a file imports, with each name that it takes from one: `a.b` and `a.b.c`."""
    for node in statements(parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def among(modules: Iterable[str], names: set[str]) -> list[str]:
    """Returns the test files among `names` that are imported."""
    return sorted(names & {part for module in modules for part in module.split(".")})


@cache
def imports() -> dict[str, frozenset[str]]:
    """Returns what each file of the tests imports, by its path."""
    files = sorted(TESTS.rglob("*.py"))
    return {str(path.relative_to(TESTS)): frozenset(imported(path.read_text())) for path in files}


def test_an_import_of_a_test_file_is_found_however_it_is_written() -> None:
    names = {"test_a"}
    for source in ("import tests.rm.test_a", "from tests.rm.test_a import x", "from tests.rm import test_a"):
        assert among(imported(source), names) == ["test_a"]
        assert among(imported(f"def f():\n    {source}"), names) == ["test_a"]
    assert among(imported("from tests.rm.rm_a import test_b\nimport json"), names) == []


def test_no_file_imports_a_test_file() -> None:
    """What two test files need stands in a helper module beside them."""
    names = {path.stem for path in TESTS.rglob("test_*.py")}
    assert len(names) > 250
    assert {path: wrong for path, modules in imports().items() if (wrong := among(modules, names))} == {}


def test_schedulers_are_made_in_one_place() -> None:
    """A world (`tests/rm/rm_world.py`) recounts what it made. Streams that are recorded are made by the simulator."""
    made = {path for path, modules in imports().items() if "rm.scheduler.scheduler.Scheduler" in modules}
    assert made == {"rm/rm_world.py", "rm/replay/rm_replay_streams.py"}


def test_no_file_is_over_400_lines() -> None:
    long = {str(path.relative_to(TESTS)): len(path.read_text().splitlines()) for path in TESTS.rglob("*.py")}
    assert {path: lines for path, lines in long.items() if lines > 400} == {}


def test_the_folder_says_the_room_and_the_file_does_not_again() -> None:
    again = [
        str(path.relative_to(TESTS))
        for path in TESTS.rglob("test_*.py")
        if path.name.startswith(f"test_{path.relative_to(TESTS).parts[0]}_")
    ]
    assert again == []
