"""A job's Python script: found, imported and checked where it is submitted and where it runs."""

import atexit
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.machinery import EXTENSION_SUFFIXES
from itertools import islice
from pathlib import Path
from typing import Any

from tez_adapter.client.staging import SubmitError, alias_of
from yaqd.config import Configuration
from yaqd.config.catalogue import documented_names
from yaqd.mapreduce import Counters, Job, load_job, parse_params, unread_names
from yaqd.mapreduce.errors import JobError, SampleError
from yaqd.mapreduce.job import MAP, TaskContext
from yaqd.mapreduce.loading import split_script, user_traceback
from yaqd.mapreduce.misnamed import misnamed_notes
from yaqd.mapreduce.params import declared_params
from yaqd.mapreduce.serde import encode_key
from yaqd.storage import InputSplit, StorageError, open_reader

SAMPLE_KEY = "mapreduce.totalorderpartitioner.sample-records"
#: keys that an option without a dot may have been meant for, by their last part, and how alike that has to be
_JOB_KEYS = ("mapreduce.job.", "yaq.job.")
_ALIKE = 0.8
#: splits that a sample is taken from
_SAMPLE_SPLITS = 10


@dataclass(frozen=True, slots=True)
class CheckedScript:
    job_class: type[Job]
    #: local path
    path: str
    #: as containers see it
    script_name: str
    params: dict[str, Any]
    #: what is worth saying before it runs, a line each
    notes: tuple[str, ...] = ()


def check_script(
    conf: Configuration,
    script: str,
    class_name: str | None,
    py_files: Sequence[str] = (),
    files: Sequence[str] = (),
    *,
    before: Callable[[Path], None] | None = None,
) -> CheckedScript:
    """Import the script as the tasks will, which see nothing that is not sent along; `before` is called as by
    `load_job`. Raises JobError, SubmitError."""
    path, named = split_script(script)
    for text in py_files:
        _importable(alias_of(text)[0])
    _lay_out(files, py_files)
    job_class = load_job(path, class_name or named, before=before)
    name = Path(path).name
    if name in ("job.json", "job.splits.json"):
        raise SubmitError(f"a script cannot be named {name}")
    return CheckedScript(job_class, path, name, parse_params(job_class, texts(conf)), _notes(job_class, conf))


def _lay_out(files: Sequence[str], py_files: Sequence[str]) -> None:
    """Links to what can be imported, under the names that it has in a container, on the import path; for as long as
    this process lives, whose job may import more when it is called."""
    found = [(text, is_py_file) for texts, is_py_file in ((files, False), (py_files, True)) for text in texts]
    if not found:
        return
    folder = Path(tempfile.mkdtemp(prefix="yaq-import-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    sys.path.insert(0, str(folder))
    for text, is_py_file in found:
        source, name = alias_of(text)
        local, place = Path(source.removeprefix("file://")).absolute(), folder / name
        if local.is_file() and not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(local)
            if is_py_file:
                sys.path.insert(0, str(place.parent if place.suffix == ".py" else place))


def _notes(job_class: type[Job], conf: Configuration) -> tuple[str, ...]:
    """Keys, options and names in the class that nothing reads."""
    given = {key: conf.raw(key) or "" for key in conf.changed_keys() if is_given(conf, key)}
    from tez_adapter.client.job_keys import key_notes  # tasks, which start often, need none of it

    notes = [*misnamed_notes(job_class), *key_notes(conf, is_streaming=False, own=declared_params(job_class))]
    names = unread_names(job_class, given)
    if not names:
        return tuple(notes)
    keys = {key.rpartition(".")[2]: key for key in reversed(documented_names()) if key.startswith(_JOB_KEYS)}
    for name in names:
        near = get_close_matches(name, keys, 1, _ALIKE)
        meant = f"; did you mean {keys[near[0]]}?" if near else ""
        notes.append(f"-D {name}: {job_class.__name__} has no such option, so it sets nothing{meant}")
    return tuple(notes)


def is_given(conf: Configuration, key: str) -> bool:
    """Return whether the key is set on the command line, not by a file."""
    origin = conf.origin(key)
    return origin is not None and origin.file is None and not origin.is_default


def texts(conf: Configuration) -> Mapping[str, str]:
    """Return every changed key with its value: where a job's options come from."""
    values = {key: conf.get(key) for key in conf.changed_keys()}
    return {key: value for key, value in values.items() if value is not None}


def _importable(path: str) -> None:
    """Raises SubmitError for a file of another kind; what is not on this machine is not looked at."""
    import zipfile  # only who submits has such files

    local = Path(path.removeprefix("file://"))
    if not local.is_file() or local.suffix == ".py":
        return
    if not zipfile.is_zipfile(local):
        raise SubmitError(f"--py-files {path}: neither a .py file nor a .zip or .egg that can be imported from")
    with zipfile.ZipFile(local) as archive:
        compiled = next((name for name in archive.namelist() if name.endswith(tuple(EXTENSION_SUFFIXES))), None)
    if compiled is not None:
        raise SubmitError(
            f"--py-files {path}: its {compiled} is compiled, which Python does not import from an archive: "
            "install it on the nodes, or send it unpacked with --archives"
        )


def add_import_path(path: Path) -> None:
    """Make a .py file's folder importable, an archive (or unpacked folder) itself."""
    entry = str((path.parent if path.suffix == ".py" else path).resolve())
    if entry not in sys.path:
        sys.path.insert(0, entry)


def sample_boundaries(
    script: CheckedScript, splits: Sequence[InputSplit], partitions: int, conf: Configuration
) -> list[bytes]:
    """Return encoded keys that divide the map output's keys into equal parts.

    They are found from the first records of some splits.
    """
    from tez_adapter.data import boundaries_from_sample

    wanted = conf.get_int(SAMPLE_KEY, 20_000, minimum=1)
    step = max(1, len(splits) // _SAMPLE_SPLITS)
    chosen = splits[::step][:_SAMPLE_SPLITS]
    keys: list[bytes] = []
    for split in chosen:
        keys += _sample_split(script, split, wanted // len(chosen) + 1, conf)
    return boundaries_from_sample(keys, partitions)


def _sample_split(script: CheckedScript, split: InputSplit, wanted: int, conf: Configuration) -> list[bytes]:
    return list(islice(_mapped_keys(script, split, conf), wanted))


def _mapped_keys(script: CheckedScript, split: InputSplit, conf: Configuration) -> Iterator[bytes]:
    """Encoded keys of what the job's map yields. What fails there is the job's own mistake, and told as such."""
    from tez_adapter.tasks.map_task import read_from  # whose module this one serves, too

    reader = open_reader(script.job_class.input_format, split, conf)
    task = TaskContext(phase=MAP)
    read_from(task, split.ranges[0])
    job = script.job_class(script.params, Counters(), task)
    try:
        job.setup()
        for batch in reader.batches():
            read_from(task, reader.current)
            for key, value in batch:
                for mapped, _ in job.map(key, value):
                    yield encode_key(mapped)
    except (StorageError, JobError):
        raise
    except (Exception, SystemExit) as error:
        summary = f"{type(error).__name__}: {error}{_where_sampled(error)}"
        raise SampleError(f"map() fails on a sample of the input: {summary}", detail=user_traceback(error)) from None


def _where_sampled(error: BaseException) -> str:
    """Why a file that tasks would find may be missing here."""
    if not isinstance(error, FileNotFoundError):
        return ""
    return "; keys are sampled where the job is submitted, without the files of --files and --archives"
