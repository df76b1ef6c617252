"""`yaq riffle inspect`: what is in a merged file, on a node's disk or on HDFS, and whether it is whole."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from yaqd.cli.exits import FAILED, CommandError
from yaqd.cli.options import json_option, with_conf
from yaqd.cli.output import print_fields, print_json, print_table, size
from yaqd.config import Configuration

if TYPE_CHECKING:
    from yaqd.storage import FileSystem

_LISTED: Final = 20
#: where a job's staging folder has its map outputs: a folder for each of its job managers
_SHUFFLE: Final = "shuffle"


@click.command("inspect")
@click.argument("path")
@click.option("--partition", type=click.IntRange(min=0), help="Show the segments of this partition.")
@click.option("--verify", is_flag=True, help="Read the merged file and check every segment.")
@json_option
@with_conf
def inspect(conf: Configuration, path: str, partition: int | None, verify: bool, as_json: bool) -> None:
    """Show what is in a merged file: PATH is NAME.out or its index, NAME.out.index, of a node's disk.

    Of a job with its map outputs on HDFS PATH is the URI of a file, or of the job's staging folder, whose files are
    listed. Listed is where each partition is, in bytes; with --partition each map's segment in it, with its length as
    stored and, on a node's disk, as raw what it is unpacked. There each segment has a checksum too, the CRC-32 at its
    end or 0 of an empty one, and each partition the CRC-32 over its segments' checksums, four bytes each, big-endian:
    all out of the index, --verify compares it with the data. Exit code 1: it is damaged or no merged file.

    \b
    Example:
      yaq riffle inspect --verify riffle/1700000000000-1.out
      yaq riffle inspect --verify hdfs:///tmp/hadoop-yarn/staging/me/.staging/job_1700000000000_0001
    """
    from riffle_merger.format import FormatError
    from yaqd.storage import get_filesystem, locate

    try:
        if "://" not in path:
            _report(_of_disk(Path(path), partition, verify), as_json)
            return
        where = locate(path, conf)
        files = get_filesystem(where.root, conf)
        if not files.status(where.path).is_dir:
            _report(_packed(files, where.path, partition, verify), as_json)
        elif partition is not None:
            raise CommandError(f"{path} is a folder: --partition is for one file")
        else:
            _report_all([_whole(files, found, verify) for found in _files_of(files, where.path)], path, as_json)
    except IndexError as error:
        raise CommandError(str(error)) from None
    except (FormatError, OSError) as error:
        raise CommandError(f"not a whole merged file: {error}", FAILED) from None


# Of a node's disk ----------------------------------------------------------------------------------------------------


def _of_disk(path: Path, partition: int | None, verify: bool) -> dict[str, Any]:
    from riffle_merger.format import MergedIndex

    if path.is_dir():
        raise CommandError(
            f"{path} is a folder: name a merged file, NAME.out; those of an application are in its riffle/"
        )
    if not path.is_file():
        raise CommandError(f"{path}: there is no such file")
    data = path.with_name(path.name.removesuffix(".index"))
    side = data.with_name(f"{data.name}.index")
    if not side.exists():
        raise CommandError(f"not a merged file: there is no {side}", FAILED)
    index = MergedIndex.load(side)
    index.check()
    index.check_file(data.stat().st_size, name=str(data))
    return {
        "file": str(data),
        "bytes": index.file_bytes,
        "partitions": index.partitions,
        "maps": index.maps,
        "rows": _segments(index, partition) if partition is not None else _partitions(index),
        "damaged": _damaged(index, data) if verify else [],
        "verified": verify,
    }


def _partitions(index: Any) -> list[dict[str, int]]:
    found = (index.partition(number) for number in range(index.partitions))
    return [
        {"partition": number, "offset": part.offset, "length": part.length, "checksum": index.checksum(number)}
        for number, part in enumerate(found)
    ]


def _segments(index: Any, partition: int) -> list[dict[str, Any]]:
    starts, raw_lengths, part_lengths, checksums = index.columns(partition)
    rows = zip(index.maps, starts, part_lengths, raw_lengths, checksums, strict=True)
    return [dict(zip(("map", "offset", "length", "raw", "checksum"), row, strict=True)) for row in rows]


def _damaged(index: Any, data: Path) -> list[str]:
    from riffle_merger.format import FormatError

    damaged = []
    with data.open("rb") as file:
        for number in range(index.partitions):
            try:
                index.verify(number, file.read(index.partition(number).length))
            except FormatError as error:
                damaged.append(str(error))
    return damaged


# On HDFS --------------------------------------------------------------------------------------------------------------


def _files_of(files: "FileSystem", folder: str) -> Iterator[str]:
    """Of map outputs, merged or not, below a job's staging folder or one of those in it."""
    entries = files.list(folder)
    below = [entry for entry in entries if entry.path.rpartition("/")[2] == _SHUFFLE and entry.is_dir]
    for entry in below or entries:
        name = entry.path.rpartition("/")[2]
        if entry.is_dir and (below or name.isdecimal()):
            yield from _files_of(files, entry.path)
        elif not entry.is_dir and not name.startswith("."):
            yield entry.path


def _packed(files: "FileSystem", path: str, partition: int | None, verify: bool) -> dict[str, Any]:
    from riffle_merger.format.merged import SEGMENTS_MAX
    from riffle_merger.remote.reader import PackedFile
    from riffle_merger.remote.verify import damaged_segments

    file = PackedFile(files, path, maps=1, partitions=SEGMENTS_MAX)
    try:
        rows = list(file.rows())
        if partition is None:
            shown: list[dict[str, Any]] = [
                {"partition": number, "offset": row.offset, "length": row.length} for number, row in enumerate(rows)
            ]
        else:
            shown, offset = [], file.row(partition).offset
            for name, length in zip(file.maps, rows[partition].lengths, strict=True):
                shown.append({"map": name, "offset": offset, "length": length})
                offset += length
        return {
            "file": f"{files.uri}{path}",
            "bytes": file.footer.file_bytes,
            "partitions": file.footer.partitions,
            "maps": file.maps,
            "rows": shown,
            "damaged": _by_partition(damaged_segments(file, rows)) if verify else [],
            "verified": verify,
        }
    finally:
        file.close()


def _by_partition(damaged: Iterable[tuple[int, str]]) -> list[str]:
    maps: dict[int, list[str]] = {}
    for partition, name in damaged:
        maps.setdefault(partition, []).append(name)
    return [f"partition {partition}: {', '.join(names)}: wrong checksum" for partition, names in maps.items()]


def _whole(files: "FileSystem", path: str, verify: bool) -> dict[str, Any]:
    """One of a folder, without its rows; what is no file of map outputs is damaged."""
    from riffle_merger.format import FormatError
    from yaqd.storage import StorageError

    try:
        return {**_packed(files, path, None, verify), "rows": []}
    except (FormatError, StorageError) as error:
        place = f"{files.uri}{path}"
        unknown: dict[str, Any] = {"file": place, "bytes": None, "partitions": None, "maps": (), "rows": []}
        return {**unknown, "damaged": [str(error)], "verified": verify}


# Shown ----------------------------------------------------------------------------------------------------------------


def _report(facts: dict[str, Any], as_json: bool) -> None:
    damaged = facts["damaged"]
    if as_json:
        print_json({name: value for name, value in facts.items() if name not in ("bytes", "partitions")})
    else:
        _show(facts)
        if facts["verified"]:
            click.echo("\n".join(damaged) or "every segment is whole")
    if damaged:
        raise CommandError(f"{len(damaged)} of {facts['partitions']} partitions are damaged", FAILED)


def _show(facts: dict[str, Any]) -> None:
    maps, rows = facts["maps"], facts["rows"]
    print_fields(
        [
            ("file", facts["file"]),
            ("size", size(facts["bytes"])),
            ("maps", f"{len(maps)}: {' ... '.join(dict.fromkeys((maps[0], maps[-1])))}"),
            ("partitions", facts["partitions"]),
        ]
    )
    print_table(
        list(rows[0] if rows else ()),
        [tuple(row.values()) for row in rows[:_LISTED]],
        empty="It has no partitions.",
    )
    if len(rows) > _LISTED:
        click.echo(f"... {len(rows) - _LISTED} more; --json has all")


def _report_all(found: list[dict[str, Any]], folder: str, as_json: bool) -> None:
    damaged = [facts for facts in found if facts["damaged"]]
    if as_json:
        print_json([{name: value for name, value in facts.items() if name != "rows"} for facts in found])
    else:
        rows = [
            (
                facts["file"].rpartition("/")[2],
                "" if facts["bytes"] is None else size(facts["bytes"]),
                len(facts["maps"]) or "",
                "" if facts["partitions"] is None else facts["partitions"],
                facts["damaged"][0] if facts["damaged"] else "whole" if facts["verified"] else "",
            )
            for facts in found
        ]
        print_table(("file", "size", "maps", "partitions", "state"), rows, empty=f"no map outputs in {folder}")
    if damaged:
        raise CommandError(f"{len(damaged)} of {len(found)} files are damaged", FAILED)
