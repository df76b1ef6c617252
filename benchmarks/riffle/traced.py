"""What strace saw a process ask the kernel of map outputs and merged files, and of their indexes."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

_READS: Final = ("read", "readv", "pread64", "preadv", "preadv2", "sendfile", "splice", "copy_file_range")
_WRITES: Final = ("write", "writev", "pwrite64", "pwritev", "pwritev2")
_OPENS: Final = ("open", "openat", "openat2", "creat")
_CALLS: Final = ",".join((*_READS, *_WRITES, "openat"))
#: a file of either kind among a call's arguments, or as its result: its folder's name, and what it ends in
_FILE: Final = re.compile(r"</[^>]*/(output|riffle)/[^>]*?\.out(\.index)?>")
_NAME: Final = re.compile(r"(?:\d+ +)?(?:<\.\.\. )?(\w+)")


def strace_command(log: Path) -> list[str]:
    """What stands before a command whose calls go to that file, those of what it starts included."""
    return ["strace", "-f", "-y", "--seccomp-bpf", "-e", f"trace={_CALLS}", "-o", str(log)]


@dataclass(slots=True)
class Asked:
    """Calls that did something, and their bytes; the end of a file, and a socket that was full, are none."""

    opens: int = 0
    reads: int = 0
    read_bytes: int = 0
    writes: int = 0
    written_bytes: int = 0


@dataclass(slots=True)
class Traced:
    """By the kind of file."""

    outputs: Asked = field(default_factory=Asked)
    output_indexes: Asked = field(default_factory=Asked)
    merged: Asked = field(default_factory=Asked)
    merged_indexes: Asked = field(default_factory=Asked)

    @classmethod
    def read(cls, log: Path) -> "Traced":
        found = cls()
        for name, folder, is_index, result in _calls(log):
            if folder == "output":
                asked = found.output_indexes if is_index else found.outputs
            else:
                asked = found.merged_indexes if is_index else found.merged
            if name in _OPENS:
                asked.opens += 1
            elif result > 0 and name in _READS:
                asked.reads += 1
                asked.read_bytes += result
            elif result > 0 and name in _WRITES:
                asked.writes += 1
                asked.written_bytes += result
        return found

    @property
    def data(self) -> Asked:
        return _sum(self.outputs, self.merged)

    @property
    def indexes(self) -> Asked:
        return _sum(self.output_indexes, self.merged_indexes)

    @property
    def all(self) -> Asked:
        return _sum(self.data, self.indexes)


def _sum(one: Asked, other: Asked) -> Asked:
    return Asked(
        one.opens + other.opens,
        one.reads + other.reads,
        one.read_bytes + other.read_bytes,
        one.writes + other.writes,
        one.written_bytes + other.written_bytes,
    )


def _calls(log: Path) -> Iterator[tuple[str, str, bool, int]]:
    """Of each call that succeeded: its name, the folder and kind of its file, and its result."""
    begun: dict[str, str] = {}
    with log.open() as lines:
        for line in lines:
            thread = line.split(maxsplit=1)[0]
            if "<unfinished ...>" in line:
                begun[thread] = line
                continue
            call = begun.pop(thread, "") + line if " resumed>" in line else line
            name, file = _NAME.match(call), _FILE.search(call)
            result = re.match(r"\d+", line.rpartition(" = ")[2])
            if name and file and result:
                yield name[1], file[1], file[2] is not None, int(result[0])
