"""Which applications a list request wants; what is empty does not restrict."""

from rm.applications.records import Application
from yaqd.proto import yarn_service_pb2 as pb


class ListFilter:
    def __init__(self, request: pb.GetApplicationsRequest, user: str) -> None:
        self._types = {t.lower() for t in request.application_types}
        self._states = set(request.application_states)
        self._users = set(request.users)
        self._only_own = user if request.scope == pb.OWN else None
        #: full paths and last names, as clients write either
        self._queues = set(request.queues)
        self._tags = {t.lower() for t in request.applicationTags}
        self._name = request.name
        self._started = (request.start_begin, request.start_end or 2**63)
        self._finished = (request.finish_begin, request.finish_end or 2**63)
        self._by_finish = request.HasField("finish_begin") or request.HasField("finish_end")

    def accepts(self, app: Application) -> bool:
        finished = app.conclusion.finished_ms if app.conclusion is not None else 0
        return (
            (self._only_own is None or app.user == self._only_own)
            and (not self._types or app.type.lower() in self._types)
            and (not self._states or app.state.value in self._states)
            and (not self._users or app.user in self._users)
            and (not self._queues or self._is_in_queues(app.queue))
            and (not self._tags or any(t.lower() in self._tags for t in app.tags))
            and (not self._name or app.name == self._name)
            and self._started[0] <= app.submitted_ms <= self._started[1]
            and (not self._by_finish or self._finished[0] <= finished <= self._finished[1])
        )

    def _is_in_queues(self, path: str) -> bool:
        """Whether a queue named in the request is the application's, or one above it."""
        names = path.split(".")
        return any(
            name in self._queues or ".".join(names[: level + 1]) in self._queues for level, name in enumerate(names)
        )
