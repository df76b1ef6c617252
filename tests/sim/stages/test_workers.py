"""Processes of training end with the one that made them."""

import os
import signal
import subprocess
import sys

from tests.tez_adapter.tez_jobs import until
from tests.tez_exploration.exploration_jobs import alive

_MAKES_TWO = """
import os, signal
from multiprocessing import get_context
from yaqd.sim.stages.training.workers import spread_over

both = get_context("fork").Barrier(2)

def number(items):
    both.wait(timeout=60)  # no process takes the part of another
    return [os.getpid() for _ in items]

with spread_over(2) as spread:
    print(*spread(number, [1, 2]), flush=True)
    signal.pause()
"""


def test_processes_end_where_training_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", _MAKES_TWO], stdout=subprocess.PIPE, text=True) as made:
        assert made.stdout is not None
        pids = [int(word) for word in made.stdout.readline().split()]
        assert len(set(pids)) == 2 and alive(pids) == pids
        made.kill()
    until(lambda: not alive(pids))  # zombies count as gone: who adopts them may never ask


def test_ctrl_c_is_for_the_process_that_trains_alone() -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", _MAKES_TWO], stdout=pipe, stderr=pipe, text=True, start_new_session=True
    ) as made:
        assert made.stdout is not None
        made.stdout.readline()
        os.killpg(made.pid, signal.SIGINT)  # as a terminal does
        said = made.communicate(timeout=60)[1]
    assert said.count("Traceback") == 1 and "Process ForkProcess" not in said
