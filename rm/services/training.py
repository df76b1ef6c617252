"""The conversation with masters of training jobs: what both understand, their reports, and orders about their cores."""

from rm.applications.records import Attempt
from rm.cluster import Cluster
from rm.scheduler.events import TrainingReported
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.training import cores_order_pb, training_report
from yaqd.proto.words import TRAINING


class TrainingMasters:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def registered(
        self,
        attempt: Attempt,
        request: pb.RegisterApplicationMasterRequest,
        response: pb.RegisterApplicationMasterResponse,
    ) -> None:
        """Agree on training where the master knows of it and cores are divided."""
        attempt.trains = TRAINING in request.yaq_understands and self._cluster.scheduler.facts.divides_cores
        if attempt.trains:
            response.yaq_understands.append(TRAINING)
            attempt.cores_order_told = None

    def take_in(self, attempt: Attempt, request: pb.AllocateRequest) -> None:
        """Tell the scheduler what the job reports."""
        if attempt.trains and request.HasField("yaq_reports") and request.yaq_reports.HasField("training"):
            self._cluster.schedule(TrainingReported(attempt.id, training_report(request.yaq_reports.training)))

    def hand_out(self, attempt: Attempt, response: pb.AllocateResponse) -> None:
        """Tell the newest order, once. The answer that carries it is repeated until the master has it."""
        order = attempt.last_cores_order
        if attempt.trains and order is not None and order is not attempt.cores_order_told:
            response.yaq_orders.cores.CopyFrom(cores_order_pb(order))
            attempt.cores_order_told = order
