"""Applications that are over: what they still hold is freed, and so many of them are remembered."""

from rm.applications.records import Application
from rm.cluster import Cluster
from rm.effects import ForgetApplication, StoreUse
from rm.scheduler.events import ApplicationEnded
from yaqd.model import ApplicationId


class Retired:
    def __init__(self, cluster: Cluster, most: int) -> None:
        """`most` are remembered."""
        self._cluster = cluster
        self._most = most
        #: oldest first
        self._over: dict[ApplicationId, None] = {}

    def recall(self, app: Application) -> None:
        """Remember one that was over when an earlier ResourceManager ended."""
        self._over[app.id] = None

    def retire(self, app: Application) -> None:
        """Free what it still holds, have its nodes clean up, and forget the oldest of those that are over."""
        cluster = self._cluster
        cluster.perform(StoreUse(app))
        cluster.schedule(ApplicationEnded(app.id))
        for node_id in app.nodes:
            node = cluster.nodes.get(node_id)
            if node is not None and app.id in node.applications:
                node.applications.discard(app.id)
                node.orders.applications_to_clean.append(app.id)
        app.nodes.clear()
        app.context.ClearField("am_container_spec")  # by far the largest part, and nothing is launched any more
        self._over[app.id] = None
        while len(self._over) > self._most:
            oldest = next(iter(self._over))
            del self._over[oldest]
            cluster.perform(ForgetApplication(cluster.applications.pop(oldest)))
