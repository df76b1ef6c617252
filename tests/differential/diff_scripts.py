"""Streaming jobs: mappers, combiners and reducers in Python, awk and what a shell has."""

import random
from dataclasses import dataclass, field
from pathlib import Path

from tests.differential.diff_case import FEATURES, Scripts

_WORDS = """import sys
for line in sys.stdin.buffer:
    for word in line.split():
        sys.stdout.buffer.write(word + b"\\t1\\n")
"""
_SUM = """import sys
key, total = None, 0
for line in sys.stdin.buffer:
    word, _, count = line.rstrip(b"\\n").partition(b"\\t")
    if word != key:
        if key is not None:
            sys.stdout.buffer.write(b"%b\\t%d\\n" % (key, total))
        key, total = word, 0
    try:
        total += int(count or 0)
    except ValueError:
        total += 1000
if key is not None:
    sys.stdout.buffer.write(b"%b\\t%d\\n" % (key, total))
"""
_KEYS = """import sys
key, count = None, 0
for line in sys.stdin.buffer:
    word = line.rstrip(b"\\n").partition(b"\\t")[0]
    if word != key:
        if key is not None:
            sys.stdout.buffer.write(b"%b\\t%d\\n" % (key, count))
        key, count = word, 0
    count += 1
if key is not None:
    sys.stdout.buffer.write(b"%b\\t%d\\n" % (key, count))
"""
_COUNTING = """import sys
lines = 0
for line in sys.stdin.buffer:
    lines += 1
    sys.stderr.write("reporter:counter:Mine,lines,1\\n")
    if lines % 3 == 0:
        sys.stderr.write("reporter:counter:Mine,thirds,2\\nreporter:status:at %d\\n" % lines)
    sys.stdout.buffer.write(line.split()[0] + b"\\t1\\n" if line.split() else b"none\\t1\\n")
"""
_FLOOD = """import sys
for line in sys.stdin.buffer:
    sys.stderr.write("noise " * 400 + "\\n")
    sys.stdout.buffer.write(b"%d\\t1\\n" % len(line))
"""
_LATE = """import sys
for at, line in enumerate(sys.stdin.buffer):
    sys.stdout.buffer.write(line)
    if at == 5:
        sys.stdout.flush()
        sys.exit(7)
"""
_HEADER = """import os, sys
start = int(os.environ["mapreduce_map_input_start"])
name = os.environ["mapreduce_map_input_file"]
for at, line in enumerate(sys.stdin.buffer):
    if not (start == 0 and at == 0):
        sys.stdout.buffer.write(os.fsencode(name) + b"\\t" + line.split(b"\\t")[0].rstrip(b"\\n") + b"\\n")
"""
_NO_NEWLINE = """import sys
data = sys.stdin.buffer.read()
sys.stdout.buffer.write(b"%d\\t1\\nlast" % data.count(b"\\n"))
"""
_CLOSES = """import os, sys
first = sys.stdin.buffer.readline()
sys.stdout.buffer.write(b"first\\t" + first.rstrip(b"\\n") + b"\\n")
sys.stdout.flush()
os.close(1)
sys.stdin.buffer.read()
"""
_LARGE = """import sys
for line in sys.stdin.buffer:
    sys.stdout.buffer.write(line[:1].strip() * 60000 + b"\\t" + b"v" * 30000 + b"\\n")
"""
_KILLED = """import os, sys
sys.stdin.buffer.readline()
os.kill(os.getpid(), 9)
"""
_BYTES = """import sys
for line in sys.stdin.buffer:
    out = bytes(255 - byte for byte in line.rstrip(b"\\n"))
    sys.stdout.buffer.write(out.replace(b"\\n", b"") + b"\\n")
"""
_APPENDS = """import sys
with open("all.txt", "ab") as everything:
    everything.write(sys.stdin.buffer.read())
with open("all.txt", "rb") as everything:
    print(len(everything.read().splitlines()), 1, sep="\\t")
"""
_FOLDER = """import os, sys
os.mkdir("work")
for line in sys.stdin.buffer:
    sys.stdout.buffer.write(line)
"""


@dataclass(frozen=True)
class Tool:
    name: str
    command: str
    script: str = ""
    feature: str = ""
    #: of reducers: what it writes does not depend on the order of equal keys' values
    is_exact: bool = True
    ours_alone: bool = False
    by_split: bool = False
    environment: dict[str, str] = field(default_factory=dict)
    weight: int = 2


_MAPPERS = (
    Tool("cat", "cat", weight=5),
    Tool("words", "python3 {dir}/words.py", _WORDS, weight=5),
    Tool("counting", "python3 {dir}/counting.py", _COUNTING, "streaming-counters", weight=3),
    Tool("awk first", "env LC_ALL=C awk '{print $1 \"\\t\" 1}'", weight=3),
    Tool("awk tabs", "env LC_ALL=C awk -F'\\t' '{print $2 \"\\t\" $1}'"),
    Tool("awk lengths", "env LC_ALL=C awk '{print length($0) \"\\t\" NF}'"),
    Tool("upper", "env LC_ALL=C tr a-z A-Z"),
    Tool("sort", "env LC_ALL=C sort -r", by_split=True),
    Tool("grep some", "env LC_ALL=C grep -a a", weight=2),
    Tool("grep none", "env LC_ALL=C grep -a no-such-word-at-all", weight=1),
    Tool("cut", "env LC_ALL=C cut -c1-3"),
    Tool("wc", "env LC_ALL=C wc -l", by_split=True),
    Tool("sed", "env LC_ALL=C sed -e s/a/\\t/"),
    Tool("flood", "python3 {dir}/flood.py", _FLOOD),
    Tool("late", "python3 {dir}/late.py", _LATE, weight=1),
    Tool("header", "python3 {dir}/header.py", _HEADER, "streaming-environment", by_split=True, weight=4),
    Tool("no newline", "python3 {dir}/no_newline.py", _NO_NEWLINE, by_split=True),
    Tool("closes", "python3 {dir}/closes.py", _CLOSES, "streaming-early-close", by_split=True),
    Tool("head", "head -n 2", "", "streaming-early-close", by_split=True),
    Tool("true", "true", "", "streaming-early-close"),
    Tool("false", "false", weight=1),
    Tool("killed", "python3 {dir}/killed.py", _KILLED, weight=1),
    Tool("large", "python3 {dir}/large.py", _LARGE, weight=1),
    Tool("bytes", "python3 {dir}/bytes.py", _BYTES, "streaming-returns"),
    # stock's local runner has all tasks of a job work in one folder
    Tool("appends", "python3 {dir}/appends.py", _APPENDS, "own-folder", ours_alone=True, by_split=True),
    Tool("makes a folder", "python3 {dir}/folder.py", _FOLDER, "own-folder", ours_alone=True),
    Tool("no such", "/no/such/program", weight=1),
)
_REDUCERS = (
    Tool("identity", "", is_exact=False, weight=4),
    Tool("cat", "cat", is_exact=False, weight=4),
    Tool("sum", "python3 {dir}/sum.py", _SUM, weight=6),
    Tool("keys", "python3 {dir}/keys.py", _KEYS, weight=4),
    Tool("cut", "env LC_ALL=C cut -f1"),
    Tool("awk lines", "env LC_ALL=C awk 'END {print NR}'"),
    Tool("wc", "env LC_ALL=C wc -l"),
    Tool("true", "true", "", "streaming-early-close"),
    Tool("makes a folder", "python3 {dir}/folder.py", _FOLDER, "own-folder", is_exact=False, ours_alone=True),
    Tool("false", "false", weight=1),
)


_ENDS = ("map.input", "map.output", "reduce.input", "reduce.output")


def make_scripts(draw: random.Random) -> Scripts:
    mapper, reducer = _choose(draw, _MAPPERS), _choose(draw, _REDUCERS)
    files = {}
    for tool in (mapper, reducer):
        if tool.script:
            files[tool.command.rpartition("/")[2]] = tool.script
    parts = [f"mapper: {mapper.name}", f"reducer: {reducer.name}"]
    combiner = ""
    if reducer.name == "sum" and mapper.name in ("words", "counting", "awk first") and draw.random() < 0.5:
        combiner = reducer.command
        parts.append("combiner: sum")
    return Scripts(
        mapper=mapper.command,
        reducer=reducer.command,
        combiner=combiner,
        files=files,
        parts=parts,
        is_exact=reducer.is_exact,
        is_ours_alone=mapper.ours_alone or reducer.ours_alone,
        by_split=mapper.by_split,
    )


def make_formats(draw: random.Random, scripts: Scripts) -> dict[str, str]:
    """Programs that speak typed or raw bytes in place of these, and the job's settings for them."""
    formats = ("typedbytes", "typedbytes", "typedbytes", "rawbytes")
    one = draw.choice(formats)
    mixed = draw.random() < 0.4
    io = {f"stream.{end}": draw.choice(formats) if mixed else one for end in _ENDS}
    if mixed and draw.random() < 0.4:
        io["stream.map.input"] = "text"
    read, written, reduce_in, reduce_out = (io[f"stream.{end}"] for end in _ENDS)
    mode = draw.choices(("echo", "words", "nested", "broken", "claims"), (3, 6, 6, 1, 1))[0]
    program = "python3 {dir}/formats.py"
    scripts.mapper = "cat" if mode == "echo" and read == written else f"{program} {mode} {read} {written}"
    reducer = draw.choices(("", "echo", "sum"), (2, 2, 3))[0]
    scripts.reducer = f"{program} {reducer} {reduce_in} {reduce_out}" if reducer else ""
    is_sum = reducer == "sum"
    scripts.combiner = scripts.reducer if is_sum and written == reduce_out and draw.random() < 0.4 else ""
    scripts.files = {"formats.py": Path(__file__).with_name("diff_formats.py").read_text()}
    scripts.parts = [f"mapper: {mode} of {read} to {written}", f"reducer: {reducer} of {reduce_in} to {reduce_out}"]
    scripts.is_exact = is_sum
    scripts.by_split = False
    return io


def _choose(draw: random.Random, tools: tuple[Tool, ...]) -> Tool:
    fitting = [tool for tool in tools if not tool.feature or tool.feature in FEATURES]
    return draw.choices(fitting, [tool.weight for tool in fitting])[0]
