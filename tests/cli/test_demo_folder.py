"""What the demonstration leaves behind: nothing, unless it failed and its logs tell why."""

from pathlib import Path

import pytest

from yaqd.cli.exits import BAD_INPUT, FAILED, CommandError
from yaqd.cli.jobs.demo import demo_folder


def _fail(code: int) -> Path:
    with demo_folder(keep=False) as folder:
        (folder / "log").touch()
        raise CommandError("the job failed", code)


def test_the_folder_of_a_failed_demonstration_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(CommandError, match=r"the job failed\n  kept, for what its logs tell: .*/cluster"):
        _fail(FAILED)
    assert len(list(tmp_path.glob("*/log"))) == 1


def test_wrong_input_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(CommandError, match=r"^the job failed$"):
        _fail(BAD_INPUT)
    assert list(tmp_path.iterdir()) == []
