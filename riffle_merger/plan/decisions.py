"""What the merge scheduler hears, and what follows from it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MapOutput:
    """One finished map attempt's output file."""

    #: number of the map task; of two attempts of a task the later one counts
    map_index: int
    attempt: str
    #: the node on whose disks it lies
    node: str
    #: stored, over all partitions
    size: int


@dataclass(frozen=True, slots=True)
class SendMerge:
    """Ask the node's merger for one file out of these, in this order."""

    merge: int
    node: str
    outputs: tuple[MapOutput, ...]


@dataclass(frozen=True, slots=True)
class CancelMerge:
    """Its result is not wanted any more; the originals are used."""

    merge: int
    node: str


@dataclass(frozen=True, slots=True)
class Publish:
    """Reducers may read these: out of one merged file, or, without `merge`, each from its own."""

    node: str
    outputs: tuple[MapOutput, ...]
    merge: int | None = None


Decision = SendMerge | CancelMerge | Publish
