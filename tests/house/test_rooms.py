"""The house is what `docs/architecture.md` says: rooms, sizes, names, and no two files that need each other."""

import re
import tomllib
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

import grimp

from tests.house.house_sources import ROOMS, ROOT, defined, written

LINES_MAX = 400
FILES_MAX = 21
#: dialect: Hadoop has words for these
FORBIDDEN = {"giving", "filling", "keeping", "sent", "wishes", "moves", "storing", "waiting"}


@cache
def graph() -> grimp.ImportGraph:
    return grimp.build_graph(*ROOMS, cache_dir=None)


def room_of(module: str) -> str:
    """`yaqd` is a floor of many rooms; the others are one each."""
    parts = module.split(".")
    return ".".join(parts[:2]) if parts[0] == "yaqd" else parts[0]


def arrows() -> dict[str, set[str]]:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for module in graph().modules:
        for imported in graph().find_modules_directly_imported_by(module):
            if room_of(module) != room_of(imported):
                found[room_of(module)].add(room_of(imported))
    return found


def test_no_files_import_each_other_in_a_circle() -> None:
    """Imports for type checkers and within functions count too."""
    left = {module: set(graph().find_modules_directly_imported_by(module)) for module in graph().modules}
    while gone := {module for module, imports in left.items() if not imports}:
        left = {module: imports - gone for module, imports in left.items() if module not in gone}
    # what only stands above a circle is not part of it
    while above := left.keys() - {imported for imports in left.values() for imported in imports}:
        left = {module: imports for module, imports in left.items() if module not in above}
    assert not left, f"import circles: {left}"


def test_files_can_be_held_in_the_head() -> None:
    lines = {name: text.count("\n") for name, text in written().items()}
    assert not {name: count for name, count in lines.items() if count > LINES_MAX}


def test_folders_can_be_overlooked() -> None:
    files = Counter(str(Path(name).parent) for name in written() if not name.endswith("__init__.py"))
    assert not {folder: count for folder, count in files.items() if count > FILES_MAX}


def test_a_class_name_means_one_thing_in_a_room() -> None:
    found: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for name in written():
        for outer in defined()[name].outer_classes:
            found[name.split("/")[0], outer].append(name)
    assert not {key: names for key, names in found.items() if len(names) > 1}


def test_names_are_words_of_the_field() -> None:
    modules = {Path(name).stem for name in written()}
    classes = {inner.strip("_").lower() for name in written() for inner in defined()[name].classes}
    assert not (modules | classes) & FORBIDDEN


def test_a_bare_queue_is_a_capacity_queue() -> None:
    """What stands at a node is a node queue, in the names of files and folders too."""
    of_nodes = [name for name in written() if name.startswith("nm/") and re.search(r"/queues?(?:\.py|/)", name)]
    assert not of_nodes


def test_the_drawn_house_is_what_the_imports_say() -> None:
    text = (ROOT / "docs/architecture.md").read_text()
    table = re.findall(r"^\| `([\w.]+)` \| ([^|]*) \|$", text.split("## What imports what")[1].split("\n## ")[0], re.M)
    drawn = {room: set(re.findall(r"`([\w.]+)`", imports)) for room, imports in table}
    built = {room: imports for room, imports in arrows().items() if imports}
    assert {room: imports for room, imports in drawn.items() if imports} == built


def test_questions_of_a_newcomer_have_an_answer() -> None:
    asked = tomllib.loads((ROOT / "tests/house/questions.toml").read_text())["question"]
    assert len(asked) >= 20
    assert not [one for one in asked if not (ROOT / one["path"]).exists()]
    assert len({one["ask"] for one in asked}) == len(asked)
