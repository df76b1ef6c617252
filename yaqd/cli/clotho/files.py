"""Weights from a file, or those that ship; places that results go to."""

from pathlib import Path
from tempfile import TemporaryFile

from yaqd.cli.exits import CommandError
from yaqd.policies.clotho.weights import BYTES_MAX


def read_weights(path: Path | None) -> tuple[bytes, str]:
    """Return bytes and a name for them. Raises CommandError where the file cannot be read."""
    from yaqd.config.stage_weights import read_regular, shipped_weights

    if path is None:
        return shipped_weights(), "shipped"
    try:
        return read_regular(path, BYTES_MAX + 1), str(path)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}") from None


def check_place(option: str, path: Path) -> None:
    """Raise CommandError where no file can be written at a path: after an hour of work that would be late."""
    try:
        if path.is_file() or path.is_dir():
            with path.open("ab"):
                pass
        with TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise CommandError(f"{option} {path}: {error.strerror}; name a file that can be written") from None
