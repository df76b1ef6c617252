"""What a flow means, said once more in the simplest way: all pairs in memory, one node after the other."""

from collections.abc import Iterable
from copy import deepcopy
from pathlib import Path
from typing import Any

from tez_adapter.flow.program import FlowProgram
from yaqd.mapreduce.flow import FlowNode, NodeKind
from yaqd.mapreduce.job import MAP, REDUCE, TaskContext
from yaqd.mapreduce.serde import encode_key
from yaqd.mapreduce.text import line_of

Pairs = list[tuple[Any, Any]]


def evaluated(program: FlowProgram, inputs: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return the lines of each output, sorted."""
    flow = program.flow
    known: dict[int, Pairs] = {}
    written: dict[str, list[str]] = {}
    for number, node in enumerate(flow.nodes):
        sources = [known[source] for source in node.inputs]
        match node.kind:
            case NodeKind.READ:
                known[number] = _lines_of(inputs[node.path])
            case NodeKind.UNION:
                known[number] = [pair for pairs in sources for pair in pairs]
            case NodeKind.JOIN:
                known[number] = []  # its step asks for what it joins
            case NodeKind.WRITE:
                written[node.path] = sorted(line_of(key, value).decode().rstrip("\n") for key, value in sources[0])
            case NodeKind.STEP:
                before = flow.nodes[node.inputs[0]]
                streams = [known[source] for source in before.inputs] if before.kind is NodeKind.JOIN else sources
                sides = {name: known[source] for name, source in node.sides.items()}
                known[number] = _stepped(node, program.params[number], streams, sides)
    return written


def _lines_of(lines: list[str]) -> Pairs:
    found, offset = [], 0
    for line in lines:
        found.append((offset, line))
        offset += len(line.encode()) + 1
    return found


def _stepped(node: FlowNode, params: dict[str, Any], streams: list[Pairs], sides: dict[str, Pairs]) -> Pairs:
    assert node.job is not None
    groups: dict[bytes, tuple[Any, list[list[Any]]]] = {}
    flat: Pairs = []
    for number, pairs in enumerate(streams):
        stream = number if len(streams) > 1 else -1
        job = node.job(params, None, TaskContext(MAP, stream=stream, sides=sides))
        job.setup()
        for pair in deepcopy(pairs):
            flat += list(job.map(*pair))
        flat += list(job.cleanup() or ())
        if node.reduces:
            for key, value in flat:
                group = groups.setdefault(encode_key(key), (key, [[] for _ in streams]))
                group[1][number].append(value)
            flat = []
    if not node.reduces:
        return flat
    job = node.job(params, None, TaskContext(REDUCE, sides=sides))
    job.setup()
    reduce: Any = job.reduce
    found: Pairs = []
    for _, (key, values) in sorted(groups.items()):
        found += list(reduce(key, *map(iter, values)))
    return found + list(job.cleanup() or ())


def lines_below(folder: Path) -> list[str]:
    """Return the lines of all parts of an output, sorted."""
    return sorted(_lines(sorted(folder.glob("part-*"))))


def _lines(files: Iterable[Path]) -> list[str]:
    return [line for file in files for line in file.read_text().splitlines()]
