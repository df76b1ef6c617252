"""The Python files of the house and what they define, each read and parsed once for all tests of a process."""

import ast
import gc
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("yaqd", "rm", "nm", "riffle_merger", "tez_adapter")


@dataclass(frozen=True, slots=True)
class Defined:
    """What one file defines."""

    #: not in a function nor in another class
    outer_classes: tuple[str, ...]
    #: all of them
    classes: tuple[str, ...]
    #: lines and docstrings of public functions that are no properties, methods of public classes included
    documented: tuple[tuple[int, str], ...]


@cache
def texts() -> dict[str, str]:
    """Returns every file of the five rooms with its text, by its path from the root."""
    files = (path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py")))
    return {str(path.relative_to(ROOT)): path.read_text() for path in files}


@cache
def written() -> dict[str, str]:
    """Returns the files that a person writes, with their texts: no generated ones, nor any that git does not have."""
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True)
    return {name: texts()[name] for name in listed.stdout.split() if name in texts() and not name.endswith("_pb2.py")}


@cache
def defined() -> dict[str, Defined]:
    return {name: _defined(parse(text)) for name, text in texts().items()}


def parse(text: str) -> ast.Module:
    """Parses without the garbage collector: a tree has no garbage, and it would be gone through again and again."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(text)
    finally:
        if was_enabled:
            gc.enable()


def statements(node: ast.AST) -> Iterator[ast.stmt]:
    """Yields all statements below this one, at any depth. No expression holds one, so none is gone through."""
    for field in ("body", "handlers", "cases", "orelse", "finalbody"):
        found = getattr(node, field, ())
        for inner in found if isinstance(found, list) else ():
            if isinstance(inner, ast.stmt):
                yield inner
            yield from statements(inner)


def _defined(tree: ast.Module) -> Defined:
    return Defined(
        tuple(node.name for node in tree.body if isinstance(node, ast.ClassDef)),
        tuple(node.name for node in statements(tree) if isinstance(node, ast.ClassDef)),
        tuple((node.lineno, said) for node in _public_functions(tree) if (said := ast.get_docstring(node)) is not None),
    )


def _public_functions(tree: ast.Module | ast.ClassDef) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yields those that are no properties, methods of public classes included."""
    for node in tree.body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) or node.name.startswith("_"):
            continue
        if isinstance(node, ast.ClassDef):
            yield from _public_functions(node)
        elif not any("property" in ast.unparse(decorator) for decorator in node.decorator_list):
            yield node
