"""Where each word stands: `yaq mr submit examples/inverted_index.py --input books --output index --reduces 2`.

The key is a tuple, so that the places of a word arrive in order however many there are: keys are sorted, values are
not. All places of a word must meet in one reduce task, so the partition looks at the word alone.
"""

import re
from zlib import crc32

from yaqd.mapreduce import Job

find_words = re.compile(r"[^\W\d_]{3,}").finditer


class InvertedIndex(Job):
    def map(self, key, value):
        name = self.task.input_path.rpartition("/")[2]
        for match in find_words(value.lower()):
            yield (match[0], name, key), None

    def partition(self, key, partitions):
        return crc32(key[0].encode("utf-8", "surrogateescape")) % partitions

    def setup(self):
        self.word = None
        self.places = []

    def reduce(self, key, values):
        word, name, offset = key
        if word != self.word:
            yield from self.finished()
            self.word = word
        self.places.append(f"{name}:{offset}")

    def cleanup(self):
        return self.finished()

    def finished(self):
        """The line of the word whose places have all been seen."""
        if self.places:
            yield self.word, " ".join(self.places)
            self.places = []
