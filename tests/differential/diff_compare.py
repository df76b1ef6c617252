"""Where two outcomes of one case differ, in words."""

from collections.abc import Iterator, Mapping

from tests.differential.diff_case import Case, Outcome, Program
from tests.differential.diff_model import canonical

_TASK = "TaskCounter"
_JOB = "JobCounter"
_SHOWN = 200
#: sides that are Hadoop's own
STOCK = "stock"
STOCK_DAEMONS = "stock daemons"
_STOCK_SIDES = (STOCK, STOCK_DAEMONS)
#: groups of the framework's own; whatever else is counted, the program counts
_STANDARD = ("Counter", "Shuffle Errors")
#: what a program may depend on that is told by where the parts of a total order are cut
_BY_PART = ("numbers groups", "holds the last", "cleanup: both phases")


def differences(case: Case, expected: Outcome, found: Outcome, side: str) -> list[str]:
    """One line each; of failures, only that both fail and say why."""
    return [f"{side}: {line}" for line in _differences(case, expected, found, side)]


def _differences(case: Case, expected: Outcome, found: Outcome, side: str) -> Iterator[str]:
    if found.left:
        yield f"left behind: {', '.join(found.left)}"
    if expected.succeeded != found.succeeded:
        told = found.messages if not found.succeeded else expected.messages
        yield f"{_state(found)} where it should be {_state(expected)}: {_short(' / '.join(told))}"
        return
    may_be_refused = isinstance(case.program, Program) and case.program.is_range and not expected.succeeded
    if found.exit_code != expected.exit_code and not (may_be_refused and found.exit_code == 2):
        yield f"exit code {found.exit_code}, expected {expected.exit_code}"
    if not expected.succeeded:
        said = "\n".join(found.messages)
        if side not in _STOCK_SIDES and expected.messages and not any(message in said for message in expected.messages):
            yield f"fails of another cause than {_short(' / '.join(expected.messages))}: {_short(said)}"
        return
    yield from _of_parts(case, expected.parts, found.parts, side)
    yield from _of_counters(case, expected, found, side)


def _state(outcome: Outcome) -> str:
    return "SUCCEEDED" if outcome.succeeded else "FAILED"


def _of_parts(case: Case, expected: Mapping[str, bytes], found: Mapping[str, bytes], side: str) -> Iterator[str]:
    if sorted(expected) != sorted(found):
        yield f"parts {', '.join(sorted(found)) or 'none'}, expected {', '.join(sorted(expected)) or 'none'}"
        return
    if isinstance(case.program, Program) and case.program.is_range:
        if not any(word in part for part in case.program.parts for word in _BY_PART):
            wanted, got = (b"".join(parts[name] for name in sorted(parts)) for parts in (expected, found))
            end = None if "output_format = 'raw'" in case.program.source else b"\n"
            if _in_any_order(wanted, end) != _in_any_order(got, end):
                yield f"lines in all: {_first_difference(wanted, got)}"
        return
    is_exact = case.program.is_exact or not case.reduces
    separator = case.defines.get("mapreduce.output.textoutputformat.separator", "\t").encode()
    if side in _STOCK_SIDES and not case.reduces:  # which of two splits of one size comes first, it leaves open
        expected, found = ({str(n): part for n, part in enumerate(sorted(p.values()))} for p in (expected, found))
    for name, data in sorted(expected.items()):
        same = data == found[name] if is_exact else canonical(data, separator) == canonical(found[name], separator)
        if not is_exact and isinstance(case.program, Program) and "input_format = 'fixed" in case.program.source:
            same = sorted(data) == sorted(found[name])  # values with line ends in them, in any order
        if not same:
            yield f"{name}: {_first_difference(data, found[name])}"


def _in_any_order(data: bytes, line_end: bytes | None) -> list[bytes] | list[int]:
    """Its lines; its bytes, where there are no lines."""
    return sorted(data) if line_end is None else sorted(data.split(line_end))


def _of_counters(case: Case, expected: Outcome, found: Outcome, side: str) -> Iterator[str]:
    for group, name in _comparable(case, side):
        if (got := found.count(group, name)) != (wanted := expected.count(group, name)):
            if case.inject and name.startswith("TOTAL_LAUNCHED") and wanted <= got <= wanted + 1:
                continue
            yield f"{name} is {got}, expected {wanted}"
    own, gotten = ({g: dict(c) for g, c in o.counters.items() if not g.endswith(_STANDARD)} for o in (expected, found))
    if own != gotten:
        yield f"counters of the program's own: {gotten}, expected {own}"


def _comparable(case: Case, side: str) -> list[tuple[str, str]]:
    names = [(_TASK, "MAP_INPUT_RECORDS"), (_TASK, "MAP_OUTPUT_RECORDS")]
    if case.reduces:
        names += [(_TASK, "REDUCE_INPUT_GROUPS"), (_TASK, "REDUCE_OUTPUT_RECORDS")]
        if not getattr(case.program, "has_combiner", False) and not getattr(case.program, "combiner", ""):
            names.append((_TASK, "REDUCE_INPUT_RECORDS"))
    if side != STOCK:  # its local runner counts no launches
        names += [(_JOB, "TOTAL_LAUNCHED_MAPS"), (_JOB, "TOTAL_LAUNCHED_REDUCES")]
    return names


def _first_difference(expected: bytes, found: bytes) -> str:
    wanted, got = expected.split(b"\n"), found.split(b"\n")
    for at, (one, other) in enumerate(zip(wanted, got, strict=False)):
        if one != other:
            return (
                f"line {at + 1} is {_short(repr(other))}, expected {_short(repr(one))} ({len(got)}/{len(wanted)} lines)"
            )
    return f"{len(got) - 1} lines, expected {len(wanted) - 1}"


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _SHOWN else f"{flat[:_SHOWN]}..."
