"""A task of a Job class: the class is loaded, and runs the map or the reduce."""

import sys
from typing import Any

from tez_adapter.tasks.attempt import TaskAttempt
from tez_adapter.tasks.map_task import run_map
from tez_adapter.tasks.reduce_task import run_reduce
from tez_adapter.tasks.runners import Workplace
from tez_adapter.tasks.scripts import add_import_path
from tez_adapter.tasks.task_output import TaskFiles
from yaqd.mapreduce import Job, load_job, parse_params


def run(attempt: TaskAttempt, at: Workplace) -> TaskFiles | None:
    """Returns the output to commit, if it writes some."""
    job_class, params = _job_class(attempt, at)
    if attempt.is_map:
        return run_map(attempt, job_class, params)
    return run_reduce(attempt, job_class, params, at.client, at.secret)


def _job_class(attempt: TaskAttempt, at: Workplace) -> tuple[type[Job], dict[str, Any]]:
    # the container's, not the task's: what is compiled there serves the next task, too
    sys.path.insert(0, str(at.folder))
    for name in attempt.spec.py_files:
        add_import_path(at.folder / name)
    job_class = load_job(attempt.spec.script, attempt.spec.class_name, before=at.shared.try_out)
    return job_class, parse_params(job_class, attempt.spec.conf)
