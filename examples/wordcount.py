"""Count words: `yaq mr submit examples/wordcount.py --input big.txt --output counts --reduces 2`.

A word is a run of letters, in lower case. `-D min_length=4` leaves the short ones out.
"""

import re

from yaqd.mapreduce import Job, Param

find_words = re.compile(r"[^\W\d_]+").findall


class WordCount(Job):
    min_length = Param(int, default=1, help="leave out words that are shorter than this")

    def map(self, key, value):
        shortest = self.min_length
        for word in find_words(value.lower()):
            if len(word) >= shortest:
                yield word, 1

    def reduce(self, key, values):
        yield key, sum(values)

    combine = reduce
