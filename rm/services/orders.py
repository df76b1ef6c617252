"""The conversation with masters that follow orders: what both understand, their reports, and what is new for them."""

from rm.applications.records import Attempt
from rm.cluster import Cluster
from rm.scheduler.events import TrainingReported
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.stages import stages_order_pb
from yaqd.proto.training import cores_order_pb, training_report
from yaqd.proto.words import STAGES, TRAINING


class MasterOrders:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def registered(
        self,
        attempt: Attempt,
        request: pb.RegisterApplicationMasterRequest,
        response: pb.RegisterApplicationMasterResponse,
    ) -> None:
        """Agree on orders about stages, and on training where cores are divided, with masters that know of them."""
        known = {STAGES, TRAINING} if self._cluster.scheduler.facts.divides_cores else {STAGES}
        orders = attempt.orders
        orders.understood = frozenset(known.intersection(request.yaq_understands))
        response.yaq_understands.extend(sorted(orders.understood))
        orders.cores_told = orders.stages_told = None

    def take_in(self, attempt: Attempt, request: pb.AllocateRequest) -> None:
        """Tell the scheduler what a training job reports."""
        is_training = request.HasField("yaq_reports") and request.yaq_reports.HasField("training")
        if is_training and TRAINING in attempt.orders.understood:
            self._cluster.schedule(TrainingReported(attempt.id, training_report(request.yaq_reports.training)))

    @staticmethod
    def hand_out(attempt: Attempt, response: pb.AllocateResponse) -> None:
        """Tell the newest orders, each once. The answer that carries one is repeated until the master has it."""
        orders = attempt.orders
        if TRAINING in orders.understood and orders.cores is not None and orders.cores is not orders.cores_told:
            response.yaq_orders.cores.CopyFrom(cores_order_pb(orders.cores))
            orders.cores_told = orders.cores
        if STAGES in orders.understood and orders.stages is not None and orders.stages is not orders.stages_told:
            response.yaq_orders.stages.CopyFrom(stages_order_pb(orders.stages))
            orders.stages_told = orders.stages
