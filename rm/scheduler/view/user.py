"""One user of a leaf queue."""

from rm.scheduler.view.tally import Tally
from yaqd.model import Resource


class UserView(Tally):
    """One user in one leaf queue: there while it has an unfinished application or a charged container."""

    __slots__ = ("applications", "masters", "masters_used", "name", "sent", "share", "waiting")

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        #: unfinished ones
        self.applications = 0
        #: containers that wait at nodes: they are not in `used`
        self.sent = Tally()
        #: attempts that wait for something; a user with one is active
        self.waiting = 0
        #: admitted attempts, and what their masters hold or are about to
        self.masters = 0
        self.masters_used = Resource()
        #: part of the cluster, kept where the queue sums shares
        self.share = 0.0
