"""The launch contexts of a job's tasks: one form per job, made once and copied per container."""

from tez_adapter.core.dag import AttemptId
from tez_adapter.jobspec import JOB_FILE, SPLITS_FILE, JobKind, JobSpec
from tez_adapter.master.launch import command_context, configured_environment, python_context, python_environment
from tez_adapter.master.nm_links import SHUFFLE_SERVICE
from tez_adapter.merging.settings import PLANNED
from tez_adapter.tasks.attempt import SHARED_FOLDER
from yaqd.config import Configuration
from yaqd.proto import yarn_common_pb2 as pb
from yaqd.security import Credentials, JobTokenSecrets

TASK_ENTRY = "tez_adapter.tasks.task:main"
MERGER_ENTRY = "tez_adapter.merging.container:main"
_AM_RM_KIND = "YARN_AM_RM_TOKEN"


class TaskLaunch:
    def __init__(
        self,
        spec: JobSpec,
        conf: Configuration,
        credentials: Credentials,
        umbilical: tuple[str, int],
        shared_folder: str | None = None,
    ) -> None:
        """`shared_folder`: of the map outputs, where these are not at the nodes."""
        self._spec, self._conf, self._umbilical = spec, conf, umbilical
        environment = dict(spec.environment)
        resources = [r for r in spec.resources if r.name != SPLITS_FILE]
        if spec.kind is JobKind.COMMAND:
            self._context = command_context(spec.command, resources, environment)
        else:
            # one process may run maps and reduces, so it gets what either is to have
            for key in ("mapreduce.reduce.env", "mapreduce.map.env", "mapred.child.env", "mapreduce.admin.user.env"):
                environment = configured_environment(conf, key) | environment
            environment = python_environment(conf.get("yaq.job.python")) | environment
            environment[PLANNED] = "1"
            if shared_folder is not None:
                environment[SHARED_FOLDER] = shared_folder
            arguments = [f"{umbilical[0]}:{umbilical[1]}"]
            self._context = python_context(TASK_ENTRY, arguments, resources, environment)
            token = credentials.token_of_kind(JobTokenSecrets.kind)
            if token is not None:
                self._context.service_data.add(key=SHUFFLE_SERVICE, value=token.to_writable())
        # tasks may do what the job may, except speak to the ResourceManager as its job manager
        kept = {alias: t for alias, t in credentials.tokens.items() if t.kind != _AM_RM_KIND}
        self._context.tokens = Credentials(kept, dict(credentials.secrets)).write()

    def merger_context(self) -> pb.ContainerLaunchContext:
        """Of a merger of the job's own: the tasks' settings and credentials without their files."""
        environment = python_environment(self._conf.get("yaq.job.python")) | dict(self._spec.environment)
        resources = [resource for resource in self._spec.resources if resource.name == JOB_FILE]
        context = python_context(MERGER_ENTRY, ["{}:{}".format(*self._umbilical)], resources, environment)
        context.tokens = self._context.tokens
        return context

    def context(self, attempt: AttemptId, left: pb.JobLeft) -> pb.ContainerLaunchContext:
        """`left`: what is left of the job, for a node whose ResourceManager does not tell it."""
        context = pb.ContainerLaunchContext()
        context.CopyFrom(self._context)
        context.yaq_left.CopyFrom(left)
        if self._spec.kind is not JobKind.COMMAND:
            return context
        context.environment.add(key="YAQ_TASK_INDEX", value=str(attempt.task))
        context.environment.add(key="YAQ_TASKS", value=str(self._spec.tasks))
        return context
