"""Find lines: `yaq mr submit examples/grep.py --input logs --output found -D pattern='ERROR|FATAL'`.

A job without reduce: what map yields is the output, one part for each map task. A line stands behind the file it came
from and its offset there.
"""

import re

from yaqd.mapreduce import Counter, Job, Param


class Grep(Job):
    reduces = 0
    pattern = Param(str, help="regular expression that a line must match somewhere")
    ignore_case = Param(bool, default=False, help="match letters of either case")
    matched = Counter(help="lines that matched")

    def setup(self):
        self.search = re.compile(self.pattern, re.IGNORECASE if self.ignore_case else 0).search

    def map(self, key, value):
        if self.search(value):
            self.matched.increment()
            yield f"{self.task.input_path}:{key}", value
