"""Word count for streaming: one `word TAB 1` line per word."""

import sys

write = sys.stdout.write
for line in sys.stdin:
    for word in line.split():
        write(word + "\t1\n")
