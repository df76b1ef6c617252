"""Calls of the user's code that do not return."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tez_training.training_jobs import DESCENT, finish, model_sum
from tez_adapter.client.training import submit_training
from tez_adapter.jobspec import Training
from tez_adapter.training.late import LateCalls
from yaqd.config import Configuration

Write = Callable[[str, str], str]
LINE = "Descent.step() on partition 3 in iteration 5 has not returned for 3 s (yaq.ml.step.timeout)"

#: the call of iteration 5 on partition 3 does not return: `hang` is once or always
HANGING = DESCENT.replace(
    "        index, x, y = data\n",
    """        index, x, y = data
        if index == 3 and self.hang and state["at"] == 4:
            if self.hang == "always" or self.is_first("hang"):
                while True:
                    pass
        time.sleep(self.slow)
""",
).replace(
    '    fail = Param(str, default="")',
    '    fail = Param(str, default="")\n    hang = Param(str, default="")\n    slow = Param(float, default=0.0)',
)


@pytest.mark.parametrize(("timeout_s", "after_s", "is_late"), [(3.0, 3.0, False), (3.0, 3.1, True), (0.0, 1e9, False)])
def test_a_call_is_late_after_its_time_and_no_earlier_one(timeout_s: float, after_s: float, is_late: bool) -> None:
    at = [100.0]
    calls = LateCalls(timeout_s, print, clock=lambda: at[0])
    with calls.watched("first"):
        pass
    at[0] += 1000.0
    assert calls.late() is None, "none is under way"
    with calls.watched("second"):
        at[0] += after_s
        assert calls.late() == ("second" if is_late else None)
    assert calls.late() is None


def test_a_call_that_does_not_return_is_told_of_and_ends_its_process() -> None:
    program = (
        "from tez_adapter.training.late import LateCalls\n"
        "late = LateCalls(0.3, lambda line: print('told', line, flush=True)).start()\n"
        "with late.watched('T.step() on partition 1 in iteration 2'):\n"
        "    while True: pass\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=50)
    line = "T.step() on partition 1 in iteration 2 has not returned for 0.3 s (yaq.ml.step.timeout)"
    assert done.returncode == 1 and done.stdout == f"told {line}; its process was ended\n"
    assert "line 4 in <module>" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("hang", ("once", "always", ""))
def test_a_step_that_hangs_is_tried_elsewhere_and_then_ends_the_job(
    training_cluster: Configuration, write: Write, tmp_path: Path, hang: str
) -> None:
    settings = {"marks": str(tmp_path), "hang": hang, "yaq.ml.step.timeout": "3s", "slow": "" if hang else "0.2"}
    conf = training_cluster.with_overrides({name: value for name, value in settings.items() if value})
    job = submit_training(conf, write("descent.py", HANGING), Training(max_cores=2, seed=7))
    result = finish(job)
    if hang == "always":
        assert result.state == "FAILED" and LINE in result.diagnostics
    else:
        assert result.succeeded, result
        plain = submit_training(training_cluster, write("plain.py", DESCENT), Training(max_cores=2, seed=7))
        assert finish(plain).succeeded
        assert model_sum(training_cluster, job) == model_sum(training_cluster, plain)
