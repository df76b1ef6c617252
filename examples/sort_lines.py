"""Sort lines: `yaq mr submit examples/sort_lines.py --input big.txt --output sorted --reduces 4`.

`partitioner = "range"` samples the input and gives each reduce task a range of keys: the parts, read one after the
other, are in order. Lines stay bytes: nothing needs to decode them.
"""

from yaqd.mapreduce import Job


class SortLines(Job):
    input_format = "bytes"
    partitioner = "range"

    def map(self, key, value):
        yield value, None
