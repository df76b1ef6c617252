"""Average a number for each key: `yaq mr submit examples/mean.py --input table.tsv --output means -D column=3`.

Means cannot be combined, but sums and counts can: the value that travels is a tuple. A line is fields between TABs;
lines without a number in the column are counted and left out.
"""

from yaqd.mapreduce import Counter, Job, Param


class Mean(Job):
    key_column = Param(int, default=1, help="column of the key, from 1")
    column = Param(int, default=2, help="column of the number, from 1")
    skipped = Counter(help="lines without a number in the column")

    def map(self, key, value):
        fields = value.split("\t")
        try:
            yield fields[self.key_column - 1], (float(fields[self.column - 1]), 1)
        except (IndexError, ValueError):
            self.skipped.increment()

    def combine(self, key, values):
        yield key, add(values)

    def reduce(self, key, values):
        total, count = add(values)
        yield key, total / count


def add(values):
    total, count = 0.0, 0
    for part, number in values:
        total += part
        count += number
    return total, count
