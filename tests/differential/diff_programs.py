"""Job classes, put together at random from pieces that go wrong where an engine cuts a corner."""

import random
from dataclasses import dataclass

from tests.differential.diff_case import FEATURES, Program

HEAD = '''import collections
import enum
import functools
import os
import sys

from yaqd.mapreduce import Counter, Job, Param

SEEN = collections.Counter()
CALLS = 0
Place = collections.namedtuple("Place", "row column")


class Colour(enum.IntEnum):
    RED = 1
    BLUE = 2


@functools.lru_cache(maxsize=None)
def numbered(word):
    global CALLS
    CALLS += 1
    return CALLS


def words(value):
    return value.split()


class Generated(Job):
    odd = Counter(help="lines with an odd number of words")
    inject = Param(str, default="")
    calls = 0
    table = {}
    steps = 0

    def step(self):
        """Dies in the first attempt where it is told to."""
        self.steps += 1
        if self.inject and self.task.attempt == 0:
            phase, index, record, how = self.inject.split(":")
            if (phase, int(index), int(record)) == (self.task.phase, self.task.index, self.steps):
                if how == "kill":
                    os.kill(os.getpid(), 9)
                if how == "raise":
                    raise RuntimeError("injected")
                os._exit(int(how))
'''


@dataclass(frozen=True)
class Piece:
    name: str
    body: str
    #: of the values that a map yields, or that a reduce takes: int, any
    values: str = "any"
    feature: str = ""
    #: it fails, whatever the input (where there is some)
    fails: bool = False
    #: it may be told apart by which records one task got
    weight: int = 2


MAPS = (
    Piece("words", "for word in words(value):\n    yield word, 1", "int", weight=6),
    Piece("as it came", "yield key, value"),
    Piece("lines", "yield value, 1", "int"),
    Piece("lengths", "return [(len(value), 1)]", "int"),
    Piece("by first", "return [(word[:1], len(word)) for word in words(value)]", "int"),
    Piece("lazily", "return ((word, len(word)) for word in words(value))", "int"),
    Piece("zipped", "return zip(words(value), range(1, 1 << 30))", "int"),
    Piece("items", "return collections.Counter(words(value)).items()", "int"),
    Piece("mapped", "return map(lambda word: (word[-1:], 2), words(value))", "int"),
    Piece("nothing", "return ()"),
    Piece("seldom", "if len(value) % 7 == 3:\n    yield value, key"),
    Piece("lists for pairs", "for word in words(value):\n    yield [word, 1]", "int"),
    Piece(
        "reused record",
        "record = {}\nfor at, word in enumerate(words(value)):\n    record['word'] = word\n    record[at % 3] = at\n"
        "    yield word, record",
        feature="mutates",
        weight=3,
    ),
    Piece(
        "reused list",
        "row = []\nfor word in words(value):\n    row.append(word)\n    yield word, row\n    row.append(None)\n"
        "    del row[:-16]",
        feature="mutates",
        weight=3,
    ),
    Piece(
        "reused over calls",
        "row = self.table.setdefault('row', [])\nrow.append(key)\ndel row[:-3]\nyield len(row), row\nrow.clear()",
        feature="mutates",
    ),
    Piece(
        "changed key",
        "name = []\nfor word in words(value):\n    name[:] = [word, 1]\n    yield name, 1\n    name.append(2)",
        "int",
        feature="mutates",
    ),
    Piece(
        "one pair object",
        "pair = [None, None]\nfor word in words(value):\n    pair[0], pair[1] = word, len(word)\n    yield pair",
        "int",
        feature="mutates",
    ),
    Piece(
        "nested change",
        "inner = {'n': 0}\nouter = ('t', [inner])\nfor word in words(value):\n    inner['n'] += 1\n"
        "    yield word, outer",
        feature="mutates",
    ),
    Piece(
        "changed bytes",
        "buffer = bytearray()\nfor word in words(value):\n    buffer[:] = str(word).encode(errors='surrogateescape')\n"
        "    yield buffer, buffer\n    buffer += b'later'",
        feature="mutates",
    ),
    Piece(
        "class attribute",
        "for word in words(value):\n    Generated.calls += 1\n    yield Generated.calls % 4, Generated.calls",
        "int",
        feature="state",
    ),
    Piece(
        "global tally",
        "for word in words(value):\n    SEEN[word] += 1\n    yield word, SEEN[word]",
        "int",
        feature="state",
    ),
    Piece("cached", "for word in words(value):\n    yield word, numbered(word)", "int", feature="state"),
    Piece(
        "default argument",
        "def count(word, known={}, shared=self.table):\n    shared[word] = shared.get(word, 0) + 1\n"
        "    return shared[word]\nfor word in words(value):\n    yield word, count(word)",
        "int",
        feature="state",
    ),
    Piece(
        "environment",
        "last = os.environ.get('DIFF_LAST', '0')\nos.environ['DIFF_LAST'] = str(int(last) + 1)\nyield int(last), 1",
        "int",
        feature="state",
    ),
    Piece("hashed", "for word in words(value):\n    yield hash(word) % 5, 1", "int", feature="hash"),
    Piece(
        "hashed sets",
        "for word in words(value):\n    yield hash(frozenset([word, None, ('t', word[:1])])) % 5, 1",
        "int",
        feature="hash",
    ),
    Piece(
        "spooled",
        "with open('spool', 'ab') as spool:\n    for word in words(value):\n        spool.write(b'one,')\n"
        "        yield spool.tell() % 64, 1",
        "int",
        feature="own-folder",
    ),
    Piece(
        "made a folder",
        "if self.steps == 1:\n    os.mkdir('made')\nfor word in words(value):\n    yield word, 1",
        "int",
        feature="own-folder",
    ),
    Piece(
        "file names",
        "name = os.path.basename(self.task.input_path)\nfor word in words(value)[:3]:\n    yield name, 1",
        "int",
        feature="input-path",
    ),
    Piece(
        "in memory",
        "for word in words(value):\n    SEEN[word] += 1\nreturn ()",
        "int",
        feature="state",
    ),
    Piece(
        "numbers of all kinds",
        "odd = [0, -1, 255, 256, -256, -257, 1 << 31, -(1 << 63), 1 << 64, -(1 << 70), 10 ** 40, 0.0, -0.0, 1.0, 1e300,"
        " float('inf'), float('-inf'), float('nan'), True, False, None]\n"
        "yield odd[len(value) % len(odd)], 1\nyield odd[(key if type(key) is int else 1) % len(odd)], 1",
        "int",
        weight=3,
    ),
    Piece(
        "keys of all kinds",
        "odd = ['', '\\0', 'a\\0b', '\\udc80x', b'', b'\\0', b'\\0\\xff', (), ('a',), ('a', 1), ('a', b'\\0'), ['a'],"
        " [[], ()], {'b': 1, 'a': [2]}, {}, (None, True, -1, 1.5), Place(1, 2), Colour.BLUE, bytearray(b'q'),"
        " '\\u2028', '\\U0001f600', 'e\\u0301']\n"
        "yield odd[len(value) % len(odd)], 1\nfor word in words(value):\n"
        "    yield odd[len(word) % len(odd)], len(word)",
        "int",
        weight=4,
    ),
    Piece(
        "values of all kinds",
        "odd = [None, True, -1, 1.5, 'x\\0', b'\\xff', (1, (2, [3])), {'k': None, 1: 2, b'b': (True,)}, Place(0, 'p'),"
        " Colour.RED, [], {}, float('nan'), 'x' * 1000]\n"
        "for at, word in enumerate(words(value)):\n    yield word, odd[at % len(odd)]",
        weight=3,
    ),
    Piece("large values", "yield len(value) % 3, str(value)[:1] * 70_000"),
    Piece("large keys", "yield str(value)[:2] * 40_000, 1", "int"),
    Piece("one key", "for word in words(value):\n    yield 'all', 1", "int"),
    Piece("none for key", "yield None, 1", "int"),
    Piece(
        "counting",
        "self.counters.increment('lines', 'all')\nif len(words(value)) % 2:\n    self.odd.increment()\n"
        "for word in words(value):\n    self.counters.increment('letters', 'sum', len(word))\n    yield word, 1",
        "int",
        weight=3,
    ),
    Piece(
        "finally",
        "try:\n    for word in words(value):\n        yield word, 1\nfinally:\n"
        "    self.counters.increment('own', 'finally')",
        "int",
    ),
    Piece("status", "self.task.status = f'at {key}'\nyield value, 1", "int"),
    Piece("raises late", "if self.steps > 4:\n    raise ValueError(f'late at {self.steps}')\nyield value, 1", weight=1),
    Piece("divides", "yield value, 1 // (len(words(value)) - 3)", weight=1),
    Piece("returns none", "return None", fails=True, weight=1),
    Piece("yields text", "yield 'ab'", fails=True, weight=1),
    Piece("yields three", "yield 1, 2, 3", fails=True, weight=1),
    Piece("yields objects", "yield object, 1", fails=True, weight=1),
    Piece("lone surrogate", "yield '\\ud800', 1", fails=True, weight=1),
    Piece("leaves", "sys.exit(3)", fails=True, weight=1),
)

REDUCES = (
    Piece("sum", "yield key, sum(values)", "int", weight=6),
    Piece("count", "yield key, sum(1 for value in values)", weight=3),
    Piece("sorted", "yield key, sorted(map(repr, values))", weight=3),
    Piece("distinct", "yield key, len(set(map(repr, values)))"),
    Piece("several", "total = 0\nfor value in values:\n    total += 1\nyield key, total\nyield key, -total"),
    Piece("one value only", "next(values)\nyield key, 'first'"),
    Piece("none of them", "yield key, None"),
    Piece("key alone", "yield None, repr(key)"),
    Piece("nothing", "return ()"),
    Piece("seldom", "total = sum(1 for value in values)\nif total % 3 == 1:\n    yield key, total"),
    Piece("reads twice", "first = sum(1 for value in values)\nyield key, (first, sum(1 for value in values))"),
    Piece("largest", "return [(key, max(values))]", "int"),
    Piece(
        "numbers groups",
        "Generated.calls += 1\nyield Generated.calls, key",
        feature="state",
    ),
    Piece(
        "holds the last",
        "before = self.table.get('last')\nself.table['last'] = repr(key)\nyield key, before",
        feature="state",
    ),
    Piece(
        "kept in a file",
        "with open('groups', 'ab') as groups:\n    groups.write(b'one,')\n    yield key, groups.tell() // 4",
        feature="own-folder",
    ),
    Piece("changed key", "if isinstance(key, list):\n    key.append('more')\nyield key, 1", feature="mutates"),
    Piece(
        "reused row",
        "row = []\nfor value in sorted(map(repr, values))[:40]:\n    row.append(value[:4])\n    yield key, row\n"
        "    row.append('later')",
        feature="mutates",
    ),
    Piece("raises late", "if self.steps > 3:\n    raise ValueError(f'late at {self.steps}')\nyield key, 1", weight=1),
    Piece("counting", "self.odd.increment(2)\nyield key, len(list(values))"),
    Piece("returns none", "return None", fails=True, weight=1),
)

PARTITIONS = (
    Piece("by length", "return len(repr(key)) % partitions"),
    Piece("all to the last", "return partitions - 1"),
    Piece("by hash", "return hash(key) % partitions", feature="hash", weight=5),
    Piece("too high", "return partitions", fails=True, weight=1),
)


def make_program(draw: random.Random, input_format: str) -> Program:
    """A job class. Which pieces fit each other is decided here."""
    mapper = _choose(draw, MAPS) if draw.random() < 0.93 else None
    takes_int = mapper is not None and mapper.values == "int"
    reducers = [piece for piece in REDUCES if takes_int or piece.values == "any"]
    reducer = _choose(draw, reducers) if draw.random() < 0.88 else None
    parts = [f"map: {mapper.name if mapper else '-'}", f"reduce: {reducer.name if reducer else '-'}"]
    methods = [_method("map", "key, value", mapper)] if mapper else []
    methods += [_method("reduce", "key, values", reducer)] if reducer else []
    has_combiner = takes_int and reducer is not None and reducer.name == "sum" and draw.random() < 0.6
    if has_combiner:
        methods.append(_combiner(draw, parts))
    uses_hash = bool(mapper and mapper.feature == "hash")
    attributes = [f"input_format = {input_format!r}"]
    if draw.random() < 0.3:
        partition = _choose(draw, PARTITIONS)
        parts.append(f"partition: {partition.name}")
        methods.append(_method("partition", "key, partitions", partition))
        uses_hash = uses_hash or partition.feature == "hash"
    elif draw.random() < 0.08 and mapper is not None and not mapper.fails and not mapper.feature:
        attributes.append("partitioner = 'range'")
        parts.append("range")
    if draw.random() < 0.25 or (mapper and mapper.name == "in memory"):
        methods.append(_cleanup(draw, parts, takes_int or mapper is None))
    if draw.random() < 0.06:
        attributes.append("output_format = 'raw'")
        parts.append("raw")
    source = HEAD + "".join(f"    {line}\n" for line in attributes) + "\n" + "\n".join(methods)
    return Program(
        source=source,
        parts=parts,
        is_exact=reducer is not None,
        has_combiner=has_combiner,
        uses_hash=uses_hash,
        is_range="range" in parts,
    )


def map_alone(piece: Piece) -> str:
    """Returns the source of a job class that has this map and nothing else."""
    return f"{HEAD}\n{_method('map', 'key, value', piece)}"


def _choose(draw: random.Random, pieces: tuple[Piece, ...] | list[Piece]) -> Piece:
    fitting = [piece for piece in pieces if not piece.feature or piece.feature in FEATURES]
    return draw.choices(fitting, [piece.weight for piece in fitting])[0]


def _method(name: str, arguments: str, piece: Piece) -> str:
    lines = piece.body.splitlines()
    if name in ("map", "reduce"):
        lines.insert(0, "self.step()")
    return f"    def {name}(self, {arguments}):\n" + "".join(f"        {line}\n" for line in lines)


def _combiner(draw: random.Random, parts: list[str]) -> str:
    bodies = {
        "sum": "yield key, sum(values)",
        "one by one": "for value in values:\n    yield key, value",
        "in two": "total = sum(values)\nyield key, total - 1\nyield key, 1",
        "equal key": "copy = type(key)(key) if isinstance(key, (list, str)) else key\nyield copy, sum(values)",
        "other key": "yield 'other', sum(values)",
    }
    name = draw.choices(list(bodies), (6, 2, 2, 2, 1))[0]
    parts.append(f"combine: {name}")
    return _method("combine", "key, values", Piece(name, bodies[name]))


def _cleanup(draw: random.Random, parts: list[str], takes_int: bool) -> str:
    bodies = {
        "tally": "return sorted(SEEN.items(), key=repr) if self.task.phase == 'map' else ()",
        "both phases": "yield 'end', self.steps" if takes_int else "yield 'end', 'x'",
        "nothing": "return None",
        "raises": "if self.steps > 2:\n    raise KeyError('at the end')\nreturn ()",
    }
    name = draw.choices(list(bodies), (5, 4, 2, 1))[0]
    parts.append(f"cleanup: {name}")
    return _method("cleanup", "", Piece(name, bodies[name])).replace("(self, )", "(self)")
