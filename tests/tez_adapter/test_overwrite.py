"""`--overwrite` replaces the results of an earlier job, and touches nothing else."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tez_adapter.client.local import run_local
from tez_adapter.client.staging import SubmitError
from yaqd.config import Configuration
from yaqd.mapreduce import Job
from yaqd.storage import StorageError


class Upper(Job):
    reduces = 0

    def map(self, key: int, value: str) -> Iterator[tuple[str, None]]:
        yield value.upper(), None


def run(folder: Path, *inputs: Path, overwrite: bool = True) -> str:
    run_local(Upper, [str(path) for path in inputs], str(folder), Configuration.load(environ={}), overwrite=overwrite)
    return "".join(path.read_text() for path in sorted(folder.glob("part-*")))


def test_results_are_replaced_only_when_asked(tmp_path: Path) -> None:
    first, second, out = (tmp_path / name for name in ("a", "b", "out"))
    first.write_text("one\n")
    second.write_text("two\n")
    assert "ONE" in run(out, first)
    with pytest.raises(StorageError, match="exists already"):
        run(out, second, overwrite=False)
    found = run(out, second)
    assert "TWO" in found and "ONE" not in found


@pytest.mark.parametrize("precious", ["notes.txt", "part", "src"])
def test_a_folder_with_anything_else_is_left_alone(precious: str, tmp_path: Path) -> None:
    text, out = tmp_path / "a", tmp_path / "out"
    text.write_text("one\n")
    run(out, text)
    (out / precious).write_text("precious")
    with pytest.raises(SubmitError, match=f"holds {precious}, which is no job's result: --overwrite leaves it alone"):
        run(out, text)
    assert (out / "_SUCCESS").exists() and (out / precious).exists()


def test_what_is_to_be_read_is_not_removed_and_a_missing_input_removes_nothing(tmp_path: Path) -> None:
    text, out = tmp_path / "a", tmp_path / "out"
    text.write_text("one\n")
    before = run(out, text)
    (tmp_path / "link").symlink_to(out)
    ways_in = [tmp_path / name for name in ("o*", "[n-p]ut/part-*", "link", "link/part-*")]
    for inputs in ([out], [text, out / "part-*"], *([way] for way in ways_in)):
        with pytest.raises(SubmitError, match=r"lies in the output folder .*, which --overwrite would remove"):
            run(out, *inputs)
    with pytest.raises(StorageError):
        run(out, tmp_path / "absent")
    assert "".join(path.read_text() for path in sorted(out.glob("part-*"))) == before
    with pytest.raises(SubmitError, match="is a file: --overwrite replaces folders"):
        run(text, text)
