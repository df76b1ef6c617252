"""What travels with a job, laid out for a run without a cluster: what the folder of a container would have.

Files are copied, archives are unpacked under their names, and both are gone after the run.
"""

import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tez_adapter.client.archives import TAR_ENDS, ZIP_ENDS
from tez_adapter.client.staging import SubmitError, alias_of, check_file
from tez_adapter.client.submit import Attachments
from yaqd.config import Configuration
from yaqd.storage import get_filesystem


@contextmanager
def laid_out(attachments: Attachments, conf: Configuration) -> Iterator[Path | None]:
    """Lay the files out and yield their folder, for the time of the context; None where nothing travels.

    Raises SubmitError, in one line, for a file that is missing or an archive that cannot be read.
    """
    if not (attachments.files or attachments.py_files or attachments.archives):
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="yaq-local-files-") as name:
        folder = Path(name, "work")
        folder.mkdir()
        for text in (*attachments.files, *attachments.py_files):
            source, place = _places(text, folder, conf)
            shutil.copy(source, place)  # as a cluster does: what a task writes there is not the user's own file
        for text in attachments.archives:
            source, place = _places(text, folder, conf)
            _unpack(source, place)
        yield folder


def _places(text: str, folder: Path, conf: Configuration) -> tuple[Path, Path]:
    """Where `PATH#NAME` lies on this machine, and where the job finds it."""
    path, name = alias_of(text)
    place = folder / name
    if place.exists():
        raise SubmitError(f"two of the files are named {name}: write PATH#NAME for one of them")
    place.parent.mkdir(parents=True, exist_ok=True)
    if "://" in path and not path.startswith("file://"):
        return _download(path, folder.parent / "fetched" / name, conf), place
    source = Path(path.removeprefix("file://")).absolute()
    check_file(source, path)
    return source, place


def _download(uri: str, target: Path, conf: Configuration) -> Path:
    target = target / uri.rpartition("/")[2]
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as file:
        for piece in get_filesystem(uri, conf).open_range(uri, 0):
            file.write(piece)
    return target


def _unpack(source: Path, target: Path) -> None:
    """By the name, as nodes do; what is no archive by its name is taken as the file that it is."""
    name = source.name.lower()
    try:
        if name.endswith(ZIP_ENDS):
            with zipfile.ZipFile(source) as zipped:
                for member in zipped.infolist():
                    written = Path(zipped.extract(member, target))
                    if written.is_file():
                        written.chmod(member.external_attr >> 16 & 0o777 or 0o644)
        elif name.endswith(TAR_ENDS):
            with tarfile.open(source) as archive:
                if hasattr(tarfile, "data_filter"):  # came with a later patch release of Python 3.11
                    archive.extraction_filter = tarfile.data_filter
                archive.extractall(target)
        else:
            shutil.copy(source, target)
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, zlib.error) as error:
        raise SubmitError(f"{source} cannot be unpacked: {error}") from None
