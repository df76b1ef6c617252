"""Jobs handed to a cluster by a Python program."""

import sys
from pathlib import Path
from typing import Any

import pytest

from yaqd.client import ConfigError, JobError, RmUnavailable, StorageError, SubmitError, YarnError, attach, submit
from yaqd.config import Configuration
from yaqd.mapreduce import Job

pytestmark = pytest.mark.slow

_SCRIPT = """
from yaqd.mapreduce import Job, Param

class Words(Job):
    min_length = Param(int, default=1)

    def map(self, key, value):
        for word in value.split():
            if len(word) >= self.min_length:
                yield word, 1

    def reduce(self, key, values):
        yield key, sum(values)
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "client_words.py"
    path.write_text(_SCRIPT)
    (tmp_path / "in.txt").write_text("a bb a\nbb\n")
    return path


def _parts(folder: Path) -> str:
    return "".join(sorted(part.read_text() for part in folder.glob("part-r-*")))


def test_a_script_and_a_class_are_submitted_and_followed(
    cluster: Configuration, script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conf_dir, inputs = cluster.conf_dir, str(tmp_path / "in.txt")
    job = submit(str(script), inputs=inputs, output=str(tmp_path / "1"), reduces=2, conf_dir=conf_dir)
    assert job.wait(timeout_s=50).succeeded
    assert _parts(tmp_path / "1") == "a\t2\nbb\t2\n"
    assert attach(str(job.application_id), conf_dir=conf_dir).result().state == "SUCCEEDED"

    monkeypatch.syspath_prepend(str(tmp_path))
    from client_words import Words  # type: ignore[import-not-found]

    job = submit(
        Words, inputs=[inputs], output=str(tmp_path / "2"), options={"min_length": 2}, conf_dir=conf_dir, name="mine"
    )
    assert job.report().name == "mine"
    assert job.wait(timeout_s=50).succeeded
    assert _parts(tmp_path / "2") == "bb\t2\n"
    sys.modules.pop("client_words")


def test_what_cannot_be_is_said_before_anything_starts(cluster: Configuration, script: Path, tmp_path: Path) -> None:
    class Within(Job):
        pass

    inputs, output, conf_dir = str(tmp_path / "in.txt"), str(tmp_path / "out"), cluster.conf_dir
    with pytest.raises(JobError, match="stands within something else"):
        submit(Within, inputs=inputs, output=output, conf_dir=conf_dir)
    with pytest.raises(ConfigError, match=r"yarn\.nodemanager\.adress"):
        submit(str(script), inputs=inputs, output=output, conf_dir=conf_dir, options={"yarn.nodemanager.adress": 1})
    with pytest.raises(StorageError):
        submit(str(script), inputs=str(tmp_path / "absent"), output=output, conf_dir=conf_dir)
    with pytest.raises(SubmitError, match="exists already"):
        submit(str(script), inputs=inputs, output=str(tmp_path), conf_dir=conf_dir)
    with pytest.raises(SubmitError, match="unknown queue: nope"):
        submit(str(script), inputs=inputs, output=output, conf_dir=conf_dir, queue="nope")
    text: Any = "2"
    with pytest.raises(SubmitError, match="reduces is a str: give a whole number"):
        submit(str(script), inputs=inputs, output=output, conf_dir=conf_dir, reduces=text)
    with pytest.raises(YarnError, match="application_1_0001"):
        attach("application_1_0001", conf_dir=conf_dir).wait()
    gone = {"yarn.resourcemanager.address": "127.0.0.1:1", "yarn.resourcemanager.connect.max-wait.ms": 100}
    with pytest.raises(RmUnavailable):
        submit(str(script), inputs=inputs, output=output, conf_dir=conf_dir, options=gone)
