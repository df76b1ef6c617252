"""The space that an Optuna objective describes by its own suggestions. The file is read and not run.

A call such as `trial.suggest_float("rate", 1e-4, 1.0, log=True)` has all that an entry of a space has, where its
arguments are written as numbers and texts, or are names that the file gives such values at its top.
"""

import ast
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from tez_adapter.exploration.joins.objective import NOTHING
from tez_adapter.exploration.joins.style import Joined
from yaqd.mapreduce.errors import JobError

#: how a call is shown that cannot be read
_SHOWN_MAX: Final = 60
_ROUNDING: Final = 1e-9
_RANGE: Final = ("name", "low", "high")
#: positional arguments of each method, in Optuna's order
_ARGUMENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "suggest_float": _RANGE,
    "suggest_uniform": _RANGE,
    "suggest_loguniform": _RANGE,
    "suggest_discrete_uniform": (*_RANGE, "q"),
    "suggest_int": (*_RANGE, "step", "log"),
    "suggest_categorical": ("name", "choices"),
}


def suggested_space(joined: Joined) -> str:
    """Return the TOML text of the space that an objective suggests. JobError: it suggests nothing, or what cannot be
    read: it names the line."""
    tree = ast.parse(Path(joined.path).read_bytes(), joined.path)
    known = _constants(tree)
    function = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == joined.function)
    entries: dict[str, str] = {}
    for call in _calls(function):
        where = f"{joined.path}:{call.lineno}"
        name, entry = _entry(call, known, where)
        if entries.setdefault(name, entry) != entry:
            raise JobError(f"{where}: {name} is suggested from two ranges: say with --space which one counts")
    if not entries:
        raise JobError(f"{joined.path}: {joined.function} suggests nothing: say with --space what there is")
    return "".join(f"{json.dumps(name)} = {entry}\n" for name, entry in entries.items())


def _constants(tree: ast.Module) -> dict[str, Any]:
    """Return the names that a file gives a written value at its top, and no other anywhere."""
    stored = Counter(
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    )
    values = {}
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            (target,) = statement.targets
            if isinstance(target, ast.Name) and stored[target.id] == 1:
                with suppress(ValueError):
                    values[target.id] = ast.literal_eval(statement.value)
    return values


def _calls(function: ast.FunctionDef) -> Iterator[ast.Call]:
    trial = function.args.args[0].arg if function.args.args else ""
    calls = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _ARGUMENTS
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == trial
    ]
    return iter(sorted(calls, key=lambda call: (call.lineno, call.col_offset)))


def _entry(call: ast.Call, known: Mapping[str, Any], where: str) -> tuple[str, str]:
    """Return a suggestion's name and its entry in TOML."""
    assert isinstance(call.func, ast.Attribute)
    method = call.func.attr
    given = dict(zip(_ARGUMENTS[method], call.args, strict=False))
    given |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}
    try:
        values = {name: _value(node, known) for name, node in given.items()}
        name = str(values["name"])
        if method == "suggest_categorical":
            return name, f'{{ type = "choice", values = {_toml(list(values["choices"]))} }}'
        return name, _range_entry(method, values)
    except (ValueError, TypeError, KeyError):
        shown = " ".join(ast.unparse(call).split())[:_SHOWN_MAX]
        raise JobError(f"{where}: {shown} has values that only the program knows: say with --space FILE") from None


def _range_entry(method: str, values: Mapping[str, Any]) -> str:
    """Return the entry of a range. Raises ValueError, TypeError, KeyError: its ends are no numbers."""
    low, high = values["low"], values["high"]
    log = bool(values.get("log")) or method == "suggest_loguniform"
    if method == "suggest_int":
        step = values.get("step") or 1
        more = f", step = {_toml(step)}" if step != 1 else ""
        return f'{{ type = "int", low = {_toml(low)}, high = {_toml(high)}{_log(log)}{more} }}'
    step = values.get("q", values.get("step"))
    if step is not None:
        many = int((high - low) / step + _ROUNDING) + 1
        return f'{{ type = "choice", values = {_toml([low + step * at for at in range(many)])} }}'
    return f'{{ type = "float", low = {_toml(float(low))}, high = {_toml(float(high))}{_log(log)} }}'


def _log(log: bool) -> str:
    return ", log = true" if log else ""


def _value(node: ast.expr, known: Mapping[str, Any]) -> Any:
    """Return what is written. Raises ValueError where it is not."""
    if isinstance(node, ast.Name):
        if node.id in known:
            return known[node.id]
        raise ValueError
    if isinstance(node, ast.List | ast.Tuple):
        return [_value(element, known) for element in node.elts]
    return ast.literal_eval(node)


def _toml(value: Any) -> str:
    """Return a value as TOML has it. Raises ValueError where TOML has none."""
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str) or value is None:
        return json.dumps(NOTHING if value is None else value)
    raise ValueError
