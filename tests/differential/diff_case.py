"""What a case is: a program, its input, its options; and what became of it on one of the sides."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

#: What generators may draw. A name taken out of here is drawn by no seed.
FEATURES = frozenset(
    {
        "mutates",  # records and keys change after they were yielded
        "state",  # class attributes, globals, caches, environment
        "hash",  # hash() in partition() and in keys
        "input-path",  # which file the record at hand is of
        "injected",  # first attempts that die
        "streaming",
        "streaming-environment",  # mapreduce_map_input_file, _start, _length
        "streaming-early-close",  # scripts that stop reading, or writing, before their input ends
        "streaming-empty-files",  # each of which is a map task of Hadoop's
        "streaming-separators",  # of other kinds than one TAB
        "streaming-returns",  # CR in what scripts write, which ends a line for Hadoop
        "streaming-formats",  # typed and raw bytes
        "streaming-counters",  # reporter:counter, also with names that cannot be
        "own-folder",  # files that a task writes where it works
        "heavy",  # lines of megabytes, thousands of files
    }
)


@dataclass(slots=True)
class Program:
    """A job class as text, and what must hold of its output."""

    source: str
    #: of which pieces it is made
    parts: list[str]
    #: the bytes of each part are determined; else its lines, with values of one key in any order
    is_exact: bool = True
    #: it reads what process it runs in: tasks by the map's split, not by the record
    has_combiner: bool = False
    #: which part a key goes to is told by hash()
    uses_hash: bool = False
    is_range: bool = False


@dataclass(slots=True)
class Scripts:
    """Programs of a streaming job; `{dir}` in a command stands for the folder of the case."""

    mapper: str
    reducer: str = ""
    combiner: str = ""
    #: by name, beside the commands
    files: dict[str, str] = field(default_factory=dict)
    parts: list[str] = field(default_factory=list)
    is_exact: bool = True
    #: stock Hadoop may do otherwise, by design
    is_ours_alone: bool = False
    #: it tells what its split is: its output is compared only where both split alike
    by_split: bool = False


@dataclass(slots=True)
class Case:
    seed: int
    number: int
    program: Program | Scripts
    #: by name below the input folder
    files: dict[str, bytes]
    shapes: list[str]
    reduces: int
    defines: dict[str, str]
    #: for the cluster alone: which first attempt dies, as the program's option reads it
    inject: str = ""

    @property
    def is_streaming(self) -> bool:
        return isinstance(self.program, Scripts)

    def describe(self) -> list[str]:
        sizes = ", ".join(f"{name} {len(data)}" for name, data in list(self.files.items())[:8])
        more = f" and {len(self.files) - 8} more" if len(self.files) > 8 else ""
        settings = " ".join(f"-D {key}={value!r}" for key, value in self.defines.items())
        return [
            f"seed {self.seed} case {self.number}: {', '.join(self.program.parts)}; {', '.join(self.shapes)}",
            f"  {len(self.files)} files: {sizes}{more}; reduces {self.reduces} {settings} {self.inject}".rstrip(),
        ]


@dataclass(slots=True)
class Outcome:
    """What became of a case on one side."""

    succeeded: bool
    #: output files by name, unpacked
    parts: dict[str, bytes] = field(default_factory=dict)
    #: by group (short name) and name
    counters: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    exit_code: int = 0
    #: why it failed; of the model: any of these may be said
    messages: list[str] = field(default_factory=list)
    #: names of files that should not be there
    left: list[str] = field(default_factory=list)

    def count(self, group: str, name: str) -> int:
        return int(self.counters.get(group, {}).get(name, 0))

    def lines(self) -> Counter[bytes]:
        return Counter(line for data in self.parts.values() for line in data.split(b"\n"))
