"""Scripts with flows: one that is written out, and random ones of the same steps."""

from hypothesis import strategies as st

STEPS = """
from yaqd.mapreduce import Flow, Job, Param

class Words(Job):
    def map(self, key, line):
        for at, word in enumerate(line.split()):
            yield word, at

class Flip(Job):
    def map(self, key, value):
        yield str(value), len(str(key))

class Some(Job):
    keep = Param(int, default=2)
    def map(self, key, value):
        if len(str(key)) % self.keep:
            yield key, [value, key]

class Size(Job):
    def map(self, key, value):
        yield str(key)[:1], len(str(value))

class Sum(Job):
    def map(self, key, value):
        yield str(key), len(str(value))
    def reduce(self, key, values):
        yield key, sum(values)

class Combined(Sum):
    def reduce(self, key, values):
        yield key, sum(values)
    combine = reduce

class Gather(Job):
    def reduce(self, key, values):
        yield key, sorted(map(str, values))[:3]

class Spread(Job):
    def map(self, key, value):
        yield (str(key), 1), str(value)
    def partition(self, key, partitions):
        return len(key[0]) % partitions
    def reduce(self, key, values):
        yield key[0], max(values)

class Match(Job):
    def map(self, key, value):
        yield str(key), (self.task.stream, str(value))
    def reduce(self, key, left, right):
        left = sorted(left)
        assert all(side == 0 for side, _ in left)
        rest = sorted(right)
        assert all(side == 1 for side, _ in rest)
        yield key, len(left) * 100 + len(rest)

class Three(Job):
    def map(self, key, value):
        yield str(key), str(value)
    def reduce(self, key, one, two, three):
        yield key, [len(list(one)), max(two, default=""), len(list(three))]

class Known(Job):
    def setup(self):
        self.sides = {name: dict((str(k), str(v)) for k, v in pairs) for name, pairs in self.task.sides.items()}
    def map(self, key, value):
        yield key, sorted((name, len(found), str(key) in found) for name, found in self.sides.items())

class Both(Job):
    def setup(self):
        self.many = len(self.task.sides["all"])
    def map(self, key, value):
        yield str(key), self.many
    def reduce(self, key, values):
        yield key, [self.many, sum(values)]

flow = Flow("random")
"""

_MAPS = ("Flip", "Some", "Size")
_REDUCES = ("Sum", "Combined", "Gather", "Spread")


@st.composite
def scripts(draw: st.DrawFn) -> str:
    """Draw a script with a flow in which each stream is read or written."""
    lines = ['s0 = flow.read("one").then(Words)', 's1 = flow.read("two").then(Words)']
    many = 2
    unread = {0, 1}
    for _ in range(draw(st.integers(1, 7))):
        kinds = ("map", "map", "apart", "reduce", "reduce", "join", "three", "union", "side", "both")
        kind = draw(st.sampled_from(kinds))
        one, two, three = (draw(st.integers(0, many - 1)) for _ in range(3))
        reduces = draw(st.integers(1, 3))
        match kind:
            case "map" | "apart":
                step = draw(st.sampled_from(_MAPS))
                lines.append(f"s{many} = s{one}.then({step}{', apart=True' if kind == 'apart' else ''})")
                unread.discard(one)
            case "reduce":
                lines.append(f"s{many} = s{one}.then({draw(st.sampled_from(_REDUCES))}, reduces={reduces})")
                unread.discard(one)
            case "join":
                lines.append(f"s{many} = flow.join(s{one}, s{two}).then(Match, reduces={reduces})")
                unread -= {one, two}
            case "three":
                lines.append(f"s{many} = flow.join(s{one}, s{two}, s{three}).then(Three, reduces={reduces})")
                unread -= {one, two, three}
            case "union":
                lines.append(f"s{many} = flow.union(s{one}, s{two})")
                unread -= {one, two}
            case "side":
                lines.append(f"s{many} = s{one}.then(Known, sides={{'a': s{two}, 'b': s{three}}})")
                unread -= {one, two, three}
            case "both":
                lines.append(f"s{many} = s{one}.then(Flip).then(Flip, apart=True).then(Both, sides={{'all': s{two}}})")
                unread -= {one, two}
        unread.add(many)
        many += 1
    lines += [f'flow.union(s{number}).write("out{number}")' for number in sorted(unread)]
    return STEPS + "\n".join(lines) + "\n"
