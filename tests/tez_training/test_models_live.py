"""`yaq ml model` and `yaq ml plot` of an application, beside `yaq ml local` of the same class."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from yaqd.ml.arrays import from_bytes

Yaq = Callable[..., str]
Write = Callable[[str, str], str]

_TRAIN = """
from pathlib import Path
import numpy as np
from yaqd.ml import IterativeJob, Param
class Train(IterativeJob):
    into = Param(str, help="folder for what is left")
    partitions, iterations = 4, 12
    def load(self, partition): return np.random.default_rng(partition.seed).normal(size=(50, 3))
    def initial(self): return np.zeros(3)
    def step(self, state, partition): return (partition - state).mean(axis=0)
    def combine(self, state, partials):
        moved = sum(partials) / len(partials)
        return state + 0.5 * moved, float(moved @ moved)
    def done(self, state): Path(self.into, "done").write_text(state.tobytes().hex())
"""


@pytest.mark.slow
def test_a_model_is_fetched_and_its_curve_drawn(yaq: Yaq, write: Write, tmp_path: Path) -> None:
    script = write("train.py", _TRAIN)
    option = f"into={tmp_path}"
    told = json.loads(yaq("ml", "submit", script, "--max-cores", "2", "--seed", "5", "-D", option, "--json"))
    application = told["application_id"]
    fetched = json.loads(yaq("ml", "model", application, "--output", str(tmp_path / "model"), "--json"))
    frame = (tmp_path / "model").read_bytes()
    assert (tmp_path / "done").read_text() == from_bytes(frame).tobytes().hex()
    (tmp_path / "done").unlink()
    here = json.loads(yaq("ml", "local", script, "--seed", "5", "-D", option, "--json"))
    assert here["sha256"] == fetched["sha256"] == hashlib.sha256(frame).hexdigest()
    assert (tmp_path / "done").read_text() == from_bytes(frame).tobytes().hex()
    yaq("ml", "plot", application, "--output", str(tmp_path / "job.svg"))
    picture = (tmp_path / "job.svg").read_text()
    for shown in (f"Train ({application})", "predicted", "9 of 10 predictions", "cores"):
        assert f"<!-- {shown} -->" in picture


@pytest.mark.slow
def test_what_has_left_no_model_is_said(yaq: Yaq, write: Write, tmp_path: Path) -> None:
    script = write("program.py", "from yaqd.ml import report\nreport(0, 1.0)\n")
    application = json.loads(yaq("ml", "submit", script, "--json"))["application_id"]
    yaq("ml", "model", application, code=2)
