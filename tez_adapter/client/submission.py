"""A job that its kind has checked, on its way to the ResourceManager: the same for all kinds.

What the cluster must have for it is checked, its files are uploaded, and the ResourceManager hears of it last.
"""

import secrets
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from tez_adapter.client.archives import check_archives
from tez_adapter.client.follow import SubmittedJob
from tez_adapter.client.overwrite import jobs_within, remove_results
from tez_adapter.client.rm_client import RmClient
from tez_adapter.client.sizes import MASTER_MEMORY_KEY, in_single_units, too_large
from tez_adapter.client.staging import STAGING_KEY, Staging, SubmitError, alias_of
from tez_adapter.client.terms import set_terms
from tez_adapter.jobspec import (
    JOB_FILE,
    SPLITS_FILE,
    JobKind,
    JobResource,
    JobSpec,
    dump_splits,
    job_id_of,
)
from tez_adapter.kinds.registry import KINDS
from tez_adapter.master.launch import configured_environment, python_context, python_environment
from tez_adapter.merging.settings import STORAGE_KEY, check_merging, on_hdfs
from tez_adapter.output_codec import shuffle_codec
from yaqd.config import Configuration
from yaqd.ipc.errors import ApplicationNotFound
from yaqd.model import DEFAULT_RACK, ApplicationId, LocalResourceType, NodeState, Resource
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as pb
from yaqd.security import Credentials, JobTokenSecrets
from yaqd.storage import qualify

#: at most at the same time
_UPLOADS = 8

APPMASTER_ENTRY = "tez_adapter.master.appmaster:main"


@dataclass(frozen=True, slots=True)
class Attachments:
    """Files that travel with a job, as the command line names them (`PATH` or `PATH#NAME`)."""

    files: Sequence[str] = ()
    #: .py, .zip, .egg: also put onto the import path
    py_files: Sequence[str] = ()
    archives: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """What all kinds of job have in common."""

    conf: Configuration
    name: str
    queue: str = "default"
    attachments: Attachments = field(default_factory=Attachments)
    environment: Mapping[str, str] = field(default_factory=dict)
    application_type: str = "YAQ"


@dataclass(frozen=True, slots=True)
class Draft:
    request: Request
    kind: JobKind
    #: of the job's specification, those of its kind
    fields: Mapping[str, Any]
    splits: Sequence[dict[str, Any]] = ()
    #: the user's, which every task gets
    scripts: Sequence[str] = ()
    #: what stands in the output folder goes, once nothing but the submission itself can fail
    replaces: bool = False

    @property
    def reduces(self) -> int:
        return int(self.fields.get("reduces", 0))


def submit(draft: Draft) -> SubmittedJob:
    """Raises SubmitError, and what storage, configuration and ResourceManager raise."""
    check_archives(draft.request.attachments.archives)
    conf = in_single_units(draft.request.conf)
    draft = replace(draft, request=replace(draft.request, conf=conf))
    _check_settings(draft, conf)
    rm = RmClient(conf)
    try:
        return _Submission(draft, rm).run()
    except BaseException:
        rm.close()
        raise


def _check_settings(draft: Draft, conf: Configuration) -> None:
    """Say here what otherwise every attempt of the first map would, or the job manager's log alone."""
    KINDS[draft.kind].check(draft.reduces, conf)
    if draft.reduces:
        shuffle_codec(conf)
        check_merging(conf)
        if on_hdfs(conf):
            _check_on_hdfs(conf)


class _Submission:
    def __init__(self, draft: Draft, rm: RmClient) -> None:
        self._draft, self._rm = draft, rm
        self._request, self._conf = draft.request, draft.request.conf
        self._application_id, self._largest = rm.new_application()
        self._kind = KINDS[draft.kind]
        self._job_id = job_id_of(self._application_id)
        self._staging = Staging(self._conf, rm.user, self._job_id)

    def run(self) -> SubmittedJob:
        draft = self._draft
        problem = too_large(self._kind.sizes(draft.reduces, self._conf), self._largest)
        if problem is not None:
            raise SubmitError(problem)
        self._check_nodes(draft.fields.get("nodes", ()))
        self._staging.create()
        try:
            spec, written = self._send()
            context = self._context(spec, written)
            if draft.replaces:
                for path in spec.outputs:
                    self._check_ended(path)
                for path in spec.outputs:
                    remove_results(self._conf, path)
            self._rm.submit(context)
        except BaseException:
            self._staging.remove()
            raise
        return SubmittedJob(self._conf, self._application_id, self._rm)

    def _check_ended(self, output: str) -> None:
        """Raises SubmitError where a job of this cluster is at work on a folder that is to be replaced."""
        for name in jobs_within(self._conf, output):
            try:
                application_id = ApplicationId.parse(name.replace("job_", "application_", 1))
                is_over = self._rm.report(application_id).state.is_final
            except (ValueError, ApplicationNotFound):
                continue
            if not is_over:
                raise SubmitError(
                    f"output folder {output}: {application_id} is writing there; wait for it, end it with "
                    f"`yaq app kill {application_id}`, or name another folder"
                )

    def _check_nodes(self, wanted: Sequence[str]) -> None:
        """A container for a host without a node would never come."""
        if not wanted:
            return
        there = {node.id.host for node in self._rm.nodes((NodeState.RUNNING,))}
        absent = [host for host in wanted if host not in there]
        if absent:
            raise SubmitError(f"no node runs on {', '.join(absent)}: `yaq node list` shows which hosts there are")

    def _send(self) -> tuple[JobSpec, Sequence[JobResource]]:
        """What tasks get, and what the job manager gets besides, all uploaded at once: HDFS may need half a second to
        close each."""
        attached = self._request.attachments
        files = [*self._draft.scripts, *attached.files, *attached.py_files]
        names = [alias_of(text)[1] for text in (*files, *attached.archives)]
        for name in names:
            if names.count(name) > 1 or name in (JOB_FILE, SPLITS_FILE):
                raise SubmitError(f"two files would be {name} in the container: name one of them with PATH#NAME")
        texts = {SPLITS_FILE: dump_splits(self._draft.splits)} if self._kind.has_splits else {}
        with ThreadPoolExecutor(_UPLOADS) as pool:
            written = [pool.submit(self._staging.write, name, data) for name, data in texts.items()]
            sent = self._staging.add(files, pool) + self._staging.add(
                attached.archives, pool, LocalResourceType.ARCHIVE
            )
        return self._spec(tuple(each.result() for each in sent)), [each.result() for each in written]

    def _spec(self, resources: tuple[JobResource, ...]) -> JobSpec:
        return JobSpec(
            job_id=self._job_id,
            name=self._request.name,
            user=self._rm.user,
            kind=self._draft.kind,
            conf=_conf_values(self._conf),
            staging=self._staging.path,
            resources=resources,
            py_files=tuple(alias_of(p)[1] for p in self._request.attachments.py_files),
            environment=self._request.environment,
            racks=self._racks() if any(split.get("hosts") for split in self._draft.splits) else {},
            **self._draft.fields,
        )

    def _racks(self) -> dict[str, str]:
        """Of hosts with a node, where it is not the default one."""
        nodes = self._rm.nodes((NodeState.RUNNING,))
        return {node.id.host: node.rack for node in nodes if node.rack not in ("", DEFAULT_RACK)}

    def _context(self, spec: JobSpec, written: Sequence[JobResource]) -> pb.ApplicationSubmissionContext:
        conf = self._conf
        # the file lists what tasks get, itself excepted: its size and time are known only now, and go as arguments
        own = self._staging.write(JOB_FILE, spec.dump())
        environment = python_environment(conf.get("yaq.job.python")) | configured_environment(
            conf, "yarn.app.mapreduce.am.env"
        )
        arguments = ("--job-file", own.uri, str(own.bytes), str(own.timestamp_ms))
        launch = python_context(APPMASTER_ENTRY, arguments, [own, *written], environment)
        token = JobTokenSecrets(secrets.token_bytes).mint(spec.job_id)
        launch.tokens = Credentials({spec.job_id: token}).write()
        context = pb.ApplicationSubmissionContext(
            application_id=convert.application_id_pb(self._application_id),
            application_name=self._request.name,
            queue=self._request.queue,
            am_container_spec=launch,
            maxAppAttempts=conf.get_int("mapreduce.am.max-attempts", 2, minimum=1),
            applicationType=self._request.application_type,
            resource=convert.resource_pb(self._master_size(spec)),
        )
        set_terms(context, conf)
        return context

    def _master_size(self, spec: JobSpec) -> Resource:
        memory_mb = self._kind.master_memory_mb(spec.tasks, self._conf)
        if memory_mb > self._largest.memory_mb:
            raise SubmitError(
                f"the job manager's {memory_mb} MB ({MASTER_MEMORY_KEY}) are more than the "
                f"{self._largest.memory_mb} MB that a container can have here"
            )
        return Resource(memory_mb, self._conf.get_int("yarn.app.mapreduce.am.resource.cpu-vcores", 1, minimum=1))


def _check_on_hdfs(conf: Configuration) -> None:
    """Map outputs go where the job's staging folder is."""
    root = qualify(conf.require(STAGING_KEY), conf)
    if not root.startswith("hdfs://"):
        raise SubmitError(
            f"map outputs cannot be on HDFS ({STORAGE_KEY}): the staging folder {root} is not; set fs.defaultFS or "
            f"{STAGING_KEY} to a folder on hdfs://"
        )


def _conf_values(conf: Configuration) -> dict[str, str]:
    """What differs from the shipped defaults, variables replaced."""
    values = {key: conf.get(key) for key in conf.changed_keys()}
    return {key: value for key, value in values.items() if value is not None}
