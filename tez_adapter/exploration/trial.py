"""A trial's process: gets its hyperparameters, and runs the program."""

import json
import sys
from pathlib import Path
from typing import Any, Final

from tez_adapter.exploration.channel import SlotChannel
from tez_adapter.exploration.joins.begun import Begun
from tez_adapter.exploration.joins.run import run_joined
from tez_adapter.exploration.joins.style import Joined
from tez_adapter.exploration.settings import SLOT_VCORES_KEY, ExplorationSettings
from tez_adapter.jobspec import Exploration
from tez_adapter.protocol import ExplorationProtocol
from tez_adapter.tasks import own_folder
from tez_adapter.tasks.attempt import TaskAttempt
from tez_adapter.tasks.runners import Workplace
from tez_adapter.tasks.scripts import add_import_path
from yaqd.mapreduce import JobError
from yaqd.ml import set_channel
from yaqd.ml.trial import begin_trial
from yaqd.proto import job_exploration_pb2 as pb

_ERROR_CHARS_MAX: Final = 4000


def run_trial(attempt: TaskAttempt, at: Workplace, number: int, lap: int) -> str:
    """Run a trial to its end; return what failed, in words, "" where nothing did."""
    terms = attempt.spec.exploration or Exploration("")
    trial = pb.TrialRef(number=number, lap=lap)
    folder = trial_folder(at, number, lap)
    own_folder.make(folder, at.folder)
    own_folder.enter(folder)
    client = at.connect()
    request = pb.TrialBeginRequest(attempt=attempt.ref, trial=trial)
    begun = client.call(ExplorationProtocol.begin, request, idempotent=True)
    if begun.leave:
        return ""
    params = json.loads(begun.params)
    channel = SlotChannel(
        client,
        attempt.ref,
        trial,
        begun,
        terms.metric,
        epochs=terms.epochs,
        cores=float(attempt.conf.get_int(SLOT_VCORES_KEY, minimum=1)),
        checkpoint_bytes_max=ExplorationSettings.read(attempt.conf).checkpoint_bytes_max,
    )
    set_channel(channel)
    begin_trial(number, params, begun.checkpoint_epoch)
    try:
        _run_program(attempt, at, terms, params, number, begun.checkpoint_epoch)
    except JobError as error:
        print(error.detail or error, file=sys.stderr, flush=True)
        return f"{error}"[:_ERROR_CHARS_MAX] or "it failed"
    return ""


def _run_program(attempt: TaskAttempt, at: Workplace, terms: Exploration, params: Any, number: int, epoch: int) -> None:
    spec = attempt.spec
    sys.path.insert(0, str(at.folder))
    for name in spec.py_files:
        add_import_path(at.folder / name)
    if spec.script:
        at.shared.try_out(at.folder / spec.script)
    begun = Begun(number, params, terms.metric, terms.pattern, terms.epochs, epoch, terms.seed)
    run_joined(Joined(spec.script, terms.style, spec.class_name), terms.arguments, begun)


def trial_folder(at: Workplace, number: int, lap: int) -> Path:
    """Return where a trial's process works."""
    return own_folder.own_folder(at.folder, f"trial-{number}-{lap}")


def image_folder(at: Workplace, number: int, lap: int) -> Path:
    """Return where a trial is that waits as an image."""
    return own_folder.own_folder(at.folder, f"image-{number}-{lap}")
