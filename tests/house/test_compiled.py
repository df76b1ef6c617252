"""What is compiled (pyproject.toml, tool.yaqd.compiled) does what the same source does as Python.

mypyc differs in a few ways that no type checker sees. Each has a test here, and what it compiles runs the tests again.
"""

import ast
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest
from mypy.build import BuildResult, build
from mypy.modulefinder import BuildSource
from mypy.nodes import CallExpr, ComparisonExpr, Expression, GeneratorExpr, NameExpr
from mypy.options import Options
from mypy.types import NoneType, TupleType, Type, UnionType, get_proper_type

from scripts.compiled import modules
from tests.house.house_sources import ROOT, parse, texts

COMPILED = tuple(modules(ROOT))


def test_all_that_is_named_is_there() -> None:
    assert len(COMPILED) > 50
    assert not set(COMPILED) - texts().keys()


def test_no_value_is_compiled() -> None:
    """mypyc knows no equality of their classes but identity. Of classes that stay Python's it asks Python."""
    values = [
        f"{name}: {node.name}"
        for name in COMPILED
        for node in ast.walk(parse(texts()[name]))
        if isinstance(node, ast.ClassDef) and any(_name(decorator) == "value" for decorator in node.decorator_list)
    ]
    assert not values


def _name(decorator: ast.expr) -> str:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return called.id if isinstance(called, ast.Name) else ""


#: those that take all, or as much as they need, one after the other, compiled too
_TAKE_IN_TURN = {"all", "any", "dict", "extend", "frozenset", "fromkeys", "join", "list", "max", "min", "next", "set"}
_TAKE_IN_TURN |= {"sorted", "sum", "tuple", "update"}


def test_what_is_lazy_stays_lazy() -> None:
    """Elsewhere `(x for x in ...)` becomes a list at once, and a look that is bounded goes through everything."""
    lazy = [f"{name}:{node.lineno}" for name in COMPILED for node in _generators(parse(texts()[name]))]
    assert not lazy, "a list, `filter`, or a function with `yield`"


def _generators(tree: ast.AST) -> Iterator[ast.GeneratorExp]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.GeneratorExp) and _taker(tree) not in _TAKE_IN_TURN:
            yield node
        yield from _generators(node)


def _taker(call: ast.AST) -> str:
    called = call.func if isinstance(call, ast.Call) else None
    return called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""


def test_nothing_compiled_is_made_without_its_constructor() -> None:
    """`C.__new__(C)` calls it there."""
    assert not [name for name in COMPILED if ".__new__(" in texts()[name]]


@pytest.fixture(scope="module")
def known() -> BuildResult:
    """The types of all that is compiled."""
    return _checked([BuildSource(str(ROOT / name), name.removesuffix(".py").replace("/", ".")) for name in COMPILED])


@pytest.mark.slow
def test_nothing_compiled_goes_by_the_identity_of_a_tuple(known: BuildResult) -> None:
    """It is no object there: each look makes another one."""
    source = "def f(a: tuple[int, str], b: tuple[int, str] | None, c: None) -> bool:\n    return a is b or b is c\n"
    assert _identities(_checked([BuildSource("f.py", "f", source)])) == [2]
    found = _identities(known)
    assert not found, f"lines of some of these modules: {found}"


@pytest.mark.slow
def test_sums_of_floats_are_of_lists(known: BuildResult) -> None:
    """Python adds them with compensation since 3.12. Compiled, a sum over `(x for x in ...)` does not."""
    source = "def f(a: list[float], b: list[int]) -> float:\n    return sum(x for x in a) + sum(x for x in b)\n"
    assert _float_sums(_checked([BuildSource("f.py", "f", source)])) == {(2, 11)}
    floats = _float_sums(known)  # of what these modules import, too
    sums = [(name, *place) for name in COMPILED for place in _lazy_sums(parse(texts()[name])) if place in floats]
    assert not sums


def _checked(sources: list[BuildSource]) -> BuildResult:
    options = Options()
    options.export_types = options.preserve_asts = options.ignore_missing_imports = True
    options.incremental = False
    options.mypy_path = [str(ROOT)]
    return build(sources, options)


def _lazy_sums(tree: ast.Module) -> Iterator[tuple[int, int]]:
    for node in ast.walk(tree):
        if _taker(node) == "sum" and any(isinstance(one, ast.GeneratorExp) for one in ast.iter_child_nodes(node)):
            assert isinstance(node, ast.expr)
            yield node.lineno, node.col_offset


def _float_sums(found: BuildResult) -> set[tuple[int, int]]:
    return {
        (each.line, each.column)
        for each, kind in found.types.items()
        if isinstance(each, CallExpr) and isinstance(each.callee, NameExpr) and each.callee.name == "sum"
        if each.args and isinstance(each.args[0], GeneratorExpr) and "float" in str(get_proper_type(kind))
    }


def _identities(found: BuildResult) -> list[int]:
    types = found.types

    def is_tuple(one: Type | None) -> bool:
        kind = get_proper_type(one)
        if isinstance(kind, UnionType):
            return any(map(is_tuple, kind.items))
        return isinstance(kind, TupleType) and kind.partial_fallback.type.fullname == "builtins.tuple"

    def is_none(one: Expression) -> bool:
        return isinstance(get_proper_type(types.get(one)), NoneType)

    return sorted(
        each.line
        for each in types
        if isinstance(each, ComparisonExpr)
        for operator, left, right in zip(each.operators, each.operands, each.operands[1:], strict=False)
        if operator in ("is", "is not") and not is_none(left) and not is_none(right)
        if is_tuple(types.get(left)) or is_tuple(types.get(right))
    )


def _has_compiler() -> bool:
    return shutil.which("cc") is not None and (Path(sysconfig.get_path("include")) / "Python.h").exists()


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(not _has_compiler(), reason="needs a C compiler and Python's headers")
def test_the_same_tests_pass_when_it_is_compiled(tmp_path: Path) -> None:
    """Among them the recorded streams of events, which must lead to the same decisions."""
    wheels, unpacked, copy = tmp_path / "wheels", tmp_path / "unpacked", tmp_path / "copy"
    quickly = {"YAQD_COMPILED": "1", "YAQD_COMPILED_QUICKLY": "1"}
    _run(ROOT, sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", wheels, **quickly)
    [wheel] = wheels.glob("yaqd-*-cp*.whl")
    shutil.unpack_archive(wheel, unpacked, "zip")
    listed = [name for name in _run(ROOT, "git", "ls-files").splitlines() if (ROOT / name).is_file()]
    compiled = [str(path.relative_to(unpacked)) for path in unpacked.rglob("*.so")]
    assert len(compiled) > len(COMPILED)
    for root, names in ((ROOT, listed), (unpacked, compiled)):
        for name in names:
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / name, copy / name)
    assert _run(copy, sys.executable, "-m", "yaqd.cli", "--version").endswith("(compiled)\n")
    test = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-m")
    _run(copy, *test, "not interop", "tests/rm/replay")
    # not the folders below those of simulator and policies: nothing that they test is compiled
    kinds = ("policies/test_*.py", "sim/test_*.py", "sim/study/test_*.py", "nm/test_*queue*.py")
    some = [path for kind in kinds for path in sorted((ROOT / "tests").glob(kind))]
    _run(copy, *test, "not slow and not interop", "tests/rm", *_named(some))


def _named(paths: list[Path]) -> list[str]:
    return [str(path.relative_to(ROOT)) for path in paths]


def _run(folder: Path, *command: object, **environment: str) -> str:
    words = [str(word) for word in command]
    added = {"PYTHONPATH": str(folder), "CI": "", **environment}
    done = subprocess.run(words, cwd=folder, env=os.environ | added, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-8000:]
    return done.stdout
