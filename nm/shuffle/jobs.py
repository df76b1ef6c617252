"""Whose map outputs may be fetched with which key: one job per application, as the containers' service data says."""

from dataclasses import dataclass

from yaqd.model import ApplicationId
from yaqd.security import Token
from yaqd.security.writable import BadWritable, WritableReader

#: in a container's environment, "1": the application's master asks the merger itself
PLANS_MERGES = "YAQ_RIFFLE_PLANNED"


class BadServiceData(ValueError):
    """The service data of a launch context is not a job token."""


@dataclass(frozen=True, slots=True)
class ShuffleJob:
    application: ApplicationId
    #: owner of the folders that hold the outputs
    user: str
    #: key of the request hashes
    password: bytes
    #: its master says itself what is merged
    plans_merges: bool = False


def job_id(application: ApplicationId) -> str:
    """Returns the job id that fetchers name; Hadoop derives it from the application's."""
    return f"job_{application.cluster_timestamp}_{application.id:04d}"


class ShuffleJobs:
    """Written by the event loop, read by the shuffle's thread: single dictionary operations only."""

    def __init__(self) -> None:
        self._jobs: dict[str, ShuffleJob] = {}

    def add(
        self, application: ApplicationId, user: str, service_data: bytes, *, plans_merges: bool = False
    ) -> ShuffleJob:
        """Takes the token that the first container of a job brings; later ones repeat it. Raises BadServiceData.

        Its kind does not matter, as in Hadoop: MapReduce and Tez give theirs different names.
        """
        try:
            token = Token.from_writable(WritableReader(service_data))
        except BadWritable as error:
            raise BadServiceData(f"service data of mapreduce_shuffle is not a token: {error}") from None
        if not token.password:
            raise BadServiceData(
                f"service data of mapreduce_shuffle is a token without a password: {token.kind[:80]!r}"
            )
        job = ShuffleJob(application, user, token.password, plans_merges)
        self._jobs[job_id(application)] = job
        return job

    def forget(self, application: ApplicationId) -> None:
        self._jobs.pop(job_id(application), None)

    def all(self) -> dict[str, ShuffleJob]:
        """Returns the jobs by job id, as of now."""
        return dict(self._jobs)

    def get(self, job: str) -> ShuffleJob | None:
        return self._jobs.get(job)
