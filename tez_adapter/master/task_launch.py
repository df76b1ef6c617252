"""The launch contexts of a job's tasks: one form per job, made once and copied per container."""

from tez_adapter.core.dag import AttemptId
from tez_adapter.jobspec import JOB_FILE, JobSpec
from tez_adapter.kinds.kind import TaskSurroundings
from tez_adapter.kinds.registry import KINDS
from tez_adapter.master.launch import python_context, python_environment
from yaqd.config import Configuration
from yaqd.proto import yarn_common_pb2 as pb
from yaqd.security import Credentials, JobTokenSecrets

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
        self._kind = KINDS[spec.kind]
        token = credentials.token_of_kind(JobTokenSecrets.kind)
        self._context = self._kind.launch(spec, TaskSurroundings(conf, umbilical, token, shared_folder))
        # tasks may do what the job may, except speak to the ResourceManager as its job manager
        kept = {alias: t for alias, t in credentials.tokens.items() if t.kind != _AM_RM_KIND}
        self._context.tokens = Credentials(kept, dict(credentials.secrets)).write()

    def merger_context(self) -> pb.ContainerLaunchContext:
        """Return the context of a merger of the job's own: the tasks' settings and credentials without their files."""
        environment = python_environment(self._conf.get("yaq.job.python")) | dict(self._spec.environment)
        resources = [resource for resource in self._spec.resources if resource.name == JOB_FILE]
        context = python_context(MERGER_ENTRY, ["{}:{}".format(*self._umbilical)], resources, environment)
        context.tokens = self._context.tokens
        return context

    def context(self, attempt: AttemptId, left: pb.JobLeft) -> pb.ContainerLaunchContext:
        """Return a task's context.

        `left`: what is left of the job, for a node whose ResourceManager does not tell it.
        """
        context = pb.ContainerLaunchContext()
        context.CopyFrom(self._context)
        context.yaq_left.CopyFrom(left)
        self._kind.tell_apart(context, self._spec, attempt)
        return context
