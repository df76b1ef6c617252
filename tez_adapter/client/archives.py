"""What is sent along to be unpacked, looked at before anybody uploads it: a broken archive would fail every attempt."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tez_adapter.client.staging import SubmitError, alias_of

#: by these ends of a name nodes tell what to unpack; any other file stays as it is
ZIP_ENDS: Final = (".zip", ".jar")
TAR_ENDS: Final = (".tar", ".tar.gz", ".tgz")


def check_archives(texts: Iterable[str]) -> None:
    """Raises SubmitError for the first that is no archive of the kind that its name says. Looks at how it begins (a
    zip: how it ends) alone, and not at what is missing or not on this machine."""
    for text in texts:
        path = alias_of(text)[0]
        local = Path(path.removeprefix("file://"))
        kind = _kind(local.name.lower())
        if kind and local.is_file() and not _is_archive(local, kind):
            raise SubmitError(f"--archives {path}: no {kind} file, though named so, and no node can unpack it")


def _kind(name: str) -> str:
    return "zip" if name.endswith(ZIP_ENDS) else "tar" if name.endswith(TAR_ENDS) else ""


def _is_archive(path: Path, kind: str) -> bool:
    import tarfile  # only who submits has such files
    import zipfile

    try:
        return zipfile.is_zipfile(path) if kind == "zip" else tarfile.is_tarfile(path)
    except EOFError:  # a compressed one that ends in its first header
        return False
