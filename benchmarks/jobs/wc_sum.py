"""Word count for streaming, combiner and reducer: adds up neighbouring lines of the same word."""

import sys

write = sys.stdout.write
current, total = None, 0
for line in sys.stdin:
    word, _, count = line.rpartition("\t")
    if word == current:
        total += int(count)
        continue
    if current is not None:
        write(f"{current}\t{total}\n")
    current, total = word, int(count)
if current is not None:
    write(f"{current}\t{total}\n")
