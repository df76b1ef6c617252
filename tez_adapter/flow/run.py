"""A task of a flow on a cluster: its script is loaded, and its inputs come from the nodes that have them."""

import sys

from tez_adapter.data import ReduceInput
from tez_adapter.flow.names import Wanted
from tez_adapter.flow.program import FlowProgram, load_flow
from tez_adapter.flow.task import flow_of, run_stage
from tez_adapter.tasks.attempt import TaskAttempt
from tez_adapter.tasks.runners import Workplace
from tez_adapter.tasks.scripts import add_import_path
from tez_adapter.tasks.shuffle_input import Outputs, fetch_all
from tez_adapter.tasks.task_output import OutputFiles


def run(attempt: TaskAttempt, at: Workplace) -> OutputFiles | None:
    """Run the task; return the files to commit, where it writes to outputs."""
    plan, job_id = flow_of(attempt).plan, attempt.spec.job_id

    def fetch(sink: ReduceInput, wanted: Wanted) -> None:
        parts = plan.stages[wanted.sources[0].stage].channels[wanted.sources[0].channel]
        outputs = Outputs(
            wanted.outputs,
            wanted.part,
            parts,
            lambda event: wanted.places(
                plan, job_id, event.attempt.vertex, event.attempt.index, event.attempt.number, event.channel
            ),
        )
        fetch_all(attempt, sink, at.client, at.secret, outputs)

    return run_stage(attempt, _program(attempt, at), fetch)


def _program(attempt: TaskAttempt, at: Workplace) -> FlowProgram:
    # the container's, not the task's: what is compiled there serves the next task, too
    sys.path.insert(0, str(at.folder))
    for name in attempt.spec.py_files:
        add_import_path(at.folder / name)
    return load_flow(
        attempt.spec.script,
        attempt.spec.conf,
        attempt.spec.class_name or None,
        shape=flow_of(attempt).shape,
        before=at.shared.try_out,
    )
