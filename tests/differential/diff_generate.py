"""Case N of seed S, alone: the same whichever others are drawn."""

import random

from tests.differential.diff_case import FEATURES, Case, Program
from tests.differential.diff_inputs import make_files
from tests.differential.diff_programs import make_program
from tests.differential.diff_scripts import make_formats, make_scripts

_MAXSIZE = "mapreduce.input.fileinputformat.split.maxsize"
_MINSIZE = "mapreduce.input.fileinputformat.split.minsize"


def make_case(seed: int, number: int) -> Case:
    draw = random.Random(f"{seed}/{number}")
    if "streaming" in FEATURES and draw.random() < 0.4:
        return _streaming(draw, seed, number)
    return _classed(draw, seed, number)


def _classed(draw: random.Random, seed: int, number: int) -> Case:
    input_format = draw.choices(("text", "bytes", "fixed:7", "fixed:3+6"), (14, 4, 1, 1))[0]
    program = make_program(draw, input_format)
    files, shapes = make_files(draw, streaming=False)
    if input_format.startswith("fixed"):
        size = sum(map(int, input_format.removeprefix("fixed:").split("+")))
        files = {name: data + b"~" * (-len(data) % size) for name, data in files.items() if "." not in name[1:]}
        files = files or {"one": b"abc" * size}
    defines = _common(draw)
    if draw.random() < 0.4 and len(files) < 50:  # splits are small where the input is: each costs a task
        largest = max(map(len, files.values()), default=0)
        defines[_MAXSIZE] = str(max(1, largest // draw.choice((2, 3, 6)) + draw.randrange(-3, 4)))
    if draw.random() < 0.2:
        defines["yaq.input.combine-small-files"] = "false"
    if draw.random() < 0.1:
        defines["mapreduce.output.textoutputformat.separator"] = draw.choice((" ", "::", "|"))
    reduces = draw.choice((0, 1, 1, 2, 3, 5))
    inject = ""
    if "injected" in FEATURES and not program.is_range and draw.random() < 0.12:
        phase = draw.choice(("map", "reduce"))
        inject = f"{phase}:{draw.randrange(2)}:{draw.choice((1, 2, 5))}:{draw.choice(('raise', 'kill', '0', '3'))}"
    return Case(seed, number, program, files, shapes, reduces, defines, inject)


def _streaming(draw: random.Random, seed: int, number: int) -> Case:
    scripts = make_scripts(draw)
    files, shapes = make_files(draw, streaming=True)
    defines = _common(draw)
    if draw.random() < 0.5:
        defines["mapreduce.job.maps"] = str(draw.choice((1, 1, 3, 5)))
    if draw.random() < 0.2:
        defines[_MINSIZE] = str(draw.choice((1, 100, 700)))
    if "streaming-separators" in FEATURES and draw.random() < 0.15:
        for phase in ("map", "reduce"):
            defines[f"stream.{phase}.output.field.separator"] = draw.choice((",", ".", " ", "ab"))
            defines[f"stream.num.{phase}.output.key.fields"] = str(draw.choice((1, 1, 2, 3)))
    reduces = draw.choice((0, 1, 1, 2, 3))
    if "streaming-formats" in FEATURES and draw.random() < 0.2:
        defines |= make_formats(draw, scripts)
        if "a line of megabytes" in shapes:
            scripts.combiner = ""  # Hadoop hands records that its buffer cannot hold to no combiner
    return Case(seed, number, scripts, files, shapes, reduces, defines)


def _common(draw: random.Random) -> dict[str, str]:
    """What any job may be given."""
    defines: dict[str, str] = {}
    if draw.random() < 0.35:
        defines["mapreduce.task.io.sort.mb"] = "1"
    codec = draw.choice(("", "", "", "none", "snappy", "zstd", "lz4"))
    if codec:
        defines["mapreduce.map.output.compress"] = str(codec != "none").lower()
        defines["mapreduce.map.output.compress.codec"] = codec
    if draw.random() < 0.12:
        defines["mapreduce.output.fileoutputformat.compress"] = "true"
        defines["mapreduce.output.fileoutputformat.compress.codec"] = "org.apache.hadoop.io.compress.GzipCodec"
    if draw.random() < 0.15:
        defines["mapreduce.job.reduce.slowstart.completedmaps"] = draw.choice(("0", "1.0"))
    if draw.random() < 0.1:
        defines["mapreduce.map.memory.mb"] = "384"
    return defines


__all__ = ["Program", "make_case"]
