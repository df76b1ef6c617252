"""What `--data` names: files of this machine, and files on storage."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from yaqd.cli.exits import CommandError
from yaqd.config import Configuration
from yaqd.storage.errors import PathNotFound

_STORED: Final = "hdfs://"
_HERE: Final = "file://"


def refuse_of_classes(script: str, *given: object) -> None:
    """Raise CommandError where a program is given what only a class takes."""
    if any(given):
        raise CommandError(
            f"{script} is a program: --data, --seed and --model are of classes; hand it ARGUMENTS after --"
        )


def data_files(texts: Iterable[str], conf: Configuration) -> tuple[str, ...]:
    """Return paths that say the same in a container. A folder, or a pattern, stands for its files, here and on HDFS.

    Raises CommandError, StorageError.
    """
    return tuple(path for text in texts for path in _files(text, conf))


def _files(text: str, conf: Configuration) -> list[str]:
    from yaqd.storage import list_inputs, locate

    if text.startswith(_STORED):
        return _some(text, [status.path for status in list_inputs([text], conf)])
    path = locate(text, conf).path if text.startswith(_HERE) else text
    if "://" in path:
        return [path]  # for the program to open in a way of its own
    if Path(path).exists() and not Path(path).is_dir():
        return [str(Path(path).resolve())]
    try:
        found = list_inputs([f"{_HERE}{Path(path).absolute()}"], conf)
    except PathNotFound:
        raise CommandError(f"--data {text}: no such file or folder") from None
    return _some(text, [str(Path(locate(status.path, conf).path).resolve()) for status in found])


def _some(text: str, paths: list[str]) -> list[str]:
    if not paths:
        raise CommandError(f"--data {text}: the folder has no files")
    return paths
