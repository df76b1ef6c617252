"""Whose map outputs may be fetched with which key: one job per application, as the containers' service data says."""

from dataclasses import dataclass

from yaqd.model import ApplicationId
from yaqd.security import JOB_TOKEN, Token
from yaqd.security.writable import BadWritable, WritableReader


class BadServiceData(ValueError):
    """The service data of a launch context is not a job token."""


@dataclass(frozen=True, slots=True)
class ShuffleJob:
    application: ApplicationId
    #: owner of the folders that hold the outputs
    user: str
    #: key of the request hashes
    password: bytes


def job_id(application: ApplicationId) -> str:
    """The job id that fetchers name; Hadoop derives it from the application's."""
    return f"job_{application.cluster_timestamp}_{application.id:04d}"


class ShuffleJobs:
    """Written by the event loop, read by the shuffle's thread: single dictionary operations only."""

    def __init__(self) -> None:
        self._jobs: dict[str, ShuffleJob] = {}

    def add(self, application: ApplicationId, user: str, service_data: bytes) -> ShuffleJob:
        """Takes the token that the first container of a job brings; later ones repeat it. Raises BadServiceData."""
        try:
            token = Token.from_writable(WritableReader(service_data))
        except BadWritable as error:
            raise BadServiceData(f"service data of mapreduce_shuffle is not a token: {error}") from None
        if token.kind != JOB_TOKEN or not token.password:
            raise BadServiceData(f"service data of mapreduce_shuffle is a token of kind {token.kind[:80]!r}")
        job = self._jobs[job_id(application)] = ShuffleJob(application, user, token.password)
        return job

    def forget(self, application: ApplicationId) -> None:
        self._jobs.pop(job_id(application), None)

    def get(self, job: str) -> ShuffleJob | None:
        return self._jobs.get(job)
