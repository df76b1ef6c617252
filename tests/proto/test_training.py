"""Messages of training: nothing of them reaches who did not ask for them, and whatever comes in has bounds."""

import math
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from yaqd.model import ApplicationId
from yaqd.model.training import ConvergenceClass, CoresOrder, TrainingReport
from yaqd.proto import training
from yaqd.proto import yarn_admin_pb2 as admin
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_server_pb2 as server
from yaqd.proto import yarn_service_pb2 as service

#: extension fields begin here
FIRST_EXTENSION = 10001
APP = ApplicationId(1_700_000_000_000, 7)


def stock_class(name: str) -> Any:
    """The message as a peer has it that knows no extension field."""
    pool = descriptor_pool.DescriptorPool()
    for module in (common, service, server, admin):
        file = descriptor_pb2.FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(file)
        for message in file.message_type:
            known = [field for field in message.field if field.number < FIRST_EXTENSION]
            del message.field[:]
            message.field.extend(known)
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"yaqd.yarn.{name}"))


def plain_and_extended() -> list[tuple[Message, Message]]:
    ask = common.ResourceRequest(resource_name="*", num_containers=2)
    report = training.training_report_pb(TrainingReport(3, 10, (1.0, 0.5), ConvergenceClass.SUBLINEAR, weight=2.0))
    order = training.cores_order_pb(CoresOrder(4, 250, 1))
    registration: dict[str, Any] = {"host": "node-1", "rpc_port": 4711, "tracking_url": "http://node-1"}
    node = common.NodeId(host="node-1", port=45454)
    heartbeat = server.NodeHeartbeatResponse(response_id=9, nextHeartBeatInterval=1000)
    with_cores = server.NodeHeartbeatResponse.FromString(heartbeat.SerializeToString())
    training.put_apps_cores(with_cores.yaq_cores, {APP: 250})
    return [
        (
            service.AllocateRequest(ask=[ask], response_id=5, progress=0.5),
            service.AllocateRequest(
                ask=[ask], response_id=5, progress=0.5, yaq_reports=service.YaqReports(training=report)
            ),
        ),
        (
            service.AllocateResponse(response_id=6, num_cluster_nodes=3),
            service.AllocateResponse(response_id=6, num_cluster_nodes=3, yaq_orders=service.YaqOrders(cores=order)),
        ),
        (
            service.RegisterApplicationMasterRequest(**registration),
            service.RegisterApplicationMasterRequest(**registration, yaq_understands=["training"]),
        ),
        (
            service.RegisterApplicationMasterResponse(queue="root.a"),
            service.RegisterApplicationMasterResponse(queue="root.a", yaq_understands=["training"]),
        ),
        (
            server.NodeStatus(node_id=node, response_id=8),
            server.NodeStatus(node_id=node, response_id=8, yaq_cpu=[training.cpu_pb(APP, 1.5)]),
        ),
        (heartbeat, with_cores),
    ]


#: what went over the wire for each, written before there were these fields
BYTES = (
    "0a0512012a200220052d0000003f",
    "10063803",
    "0a066e6f64652d3110e7241a0d687474703a2f2f6e6f64652d31",
    "2a06726f6f742e61",
    "0a0c0a066e6f64652d31108ee3021008",
    "080938e807",
)


@pytest.mark.parametrize(("plain", "extended"), plain_and_extended())
def test_a_stock_peer_reads_the_same(plain: Message, extended: Message) -> None:
    """Without extensions there is no byte that a stock peer would not write itself; with them it reads the same."""
    stock = stock_class(plain.DESCRIPTOR.name)
    as_sent = stock.FromString(plain.SerializeToString())
    assert as_sent.SerializeToString() == plain.SerializeToString()
    as_sent.DiscardUnknownFields()
    assert as_sent.SerializeToString() == plain.SerializeToString()
    assert extended.SerializeToString() != plain.SerializeToString()
    skipped = stock.FromString(extended.SerializeToString())
    skipped.DiscardUnknownFields()
    assert skipped.SerializeToString() == plain.SerializeToString()


def test_bytes_without_extensions_are_as_ever() -> None:
    assert tuple(plain.SerializeToString().hex() for plain, _ in plain_and_extended()) == BYTES


floats = st.floats(allow_nan=False)
reports = st.builds(
    TrainingReport,
    sequence=st.integers(0, 2**62),
    first_iteration=st.just(0),
    losses=st.lists(floats, max_size=5).map(tuple),
    convergence=st.none() | st.sampled_from(ConvergenceClass),
    target=st.none() | floats,
    weight=st.none() | floats,
    min_milli=st.none() | st.integers(0, training.MILLI_MAX),
    max_milli=st.none() | st.integers(0, training.MILLI_MAX),
    iterations_expected=st.none() | st.integers(0, 2**62),
    cpu_ms_per_iteration=st.none() | floats,
    partitions=st.none() | st.integers(0, 2**31 - 1),
)


@given(reports)
def test_reports_cross_the_border_unchanged(report: TrainingReport) -> None:
    sent = training.training_report_pb(report).SerializeToString()
    assert training.training_report(service.TrainingReport.FromString(sent)) == report


@given(st.builds(CoresOrder, st.integers(0, 2**62), st.none() | st.integers(0, training.MILLI_MAX), st.integers(0, 99)))
def test_orders_cross_the_border_unchanged(order: CoresOrder) -> None:
    sent = training.cores_order_pb(order).SerializeToString()
    assert training.cores_order(service.CoresOrder.FromString(sent)) == order


def test_of_too_many_losses_the_last_ones_count() -> None:
    many = tuple(float(number) for number in range(training.LOSSES_MAX + 5))
    sent = training.training_report_pb(TrainingReport(1, 100, many))
    assert sent.first_iteration == 105 and list(sent.losses) == list(many[5:])
    flood = service.TrainingReport(sequence=1, first_iteration=100, losses=many)
    read = training.training_report(flood)
    assert read.first_iteration == 105 and read.losses == many[5:]


def test_absurd_numbers_are_bounded() -> None:
    read = training.training_report(
        service.TrainingReport(
            first_iteration=2**63 - 1,
            losses=[math.nan, -math.inf] * 1000,
            min_milli=-5,
            max_milli=2**31 - 1,
            iterations_expected=-1,
            partitions=-1,
        )
    )
    assert (read.min_milli, read.max_milli) == (0, training.MILLI_MAX)
    assert (read.iterations_expected, read.partitions) == (0, 0)
    assert read.first_iteration == 2**63 - 1 and len(read.losses) == training.LOSSES_MAX
    assert training.cores_order(service.CoresOrder(milli=-1)).milli == 0


def test_a_node_s_totals_and_orders_cross_the_border() -> None:
    orders = server.AppsCores()
    training.put_apps_cores(orders, {APP: 250, ApplicationId(1, 1): None})
    assert training.apps_cores(orders) == {APP: 250, ApplicationId(1, 1): None}
    other = server.AppCpu(total_ms=-5)
    other.application_id.id = 3
    said = training.cpu_totals([training.cpu_pb(APP, 1.2345), other])
    assert said == {APP: 1234, ApplicationId(0, 3): 0}


def test_no_application_at_all_is_told_too() -> None:
    response = server.NodeHeartbeatResponse()
    training.put_apps_cores(response.yaq_cores, {})
    assert server.NodeHeartbeatResponse.FromString(response.SerializeToString()).HasField("yaq_cores")
