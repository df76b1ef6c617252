import pytest
from hypothesis import given
from hypothesis import strategies as st

from yaqd.model import ApplicationAttemptId, ApplicationId, BadIdentifier, ContainerId, NodeId, Resource

applications = st.builds(ApplicationId, st.integers(0, 2**62), st.integers(1, 2**31 - 1))
attempts = st.builds(ApplicationAttemptId, applications, st.integers(1, 2**31 - 1))


def test_string_forms_are_hadoops() -> None:
    app = ApplicationId(1700000000000, 7)
    attempt = ApplicationAttemptId(app, 1)
    assert str(app) == "application_1700000000000_0007"
    assert str(attempt) == "appattempt_1700000000000_0007_000001"
    assert str(ContainerId.make(attempt, 12)) == "container_1700000000000_0007_01_000012"
    assert str(ContainerId.make(attempt, 12, epoch=3)) == "container_e03_1700000000000_0007_01_000012"


def test_a_negative_id_prints_masked_to_forty_bits() -> None:
    attempt = ApplicationAttemptId(ApplicationId(1, 1), 1)
    assert str(ContainerId(attempt, -1)) == "container_1_0001_01_1099511627775"


@given(attempts, st.integers(1, 2**40 - 1), st.integers(0, 99_999))
def test_ids_round_trip(attempt: ApplicationAttemptId, sequence: int, epoch: int) -> None:
    container = ContainerId.make(attempt, sequence, epoch=epoch)
    assert ContainerId.parse(str(container)) == container
    assert ApplicationAttemptId.parse(str(attempt)) == attempt
    assert ApplicationId.parse(str(attempt.application_id)) == attempt.application_id


def test_ids_may_have_fewer_digits_than_hadoop_prints() -> None:
    assert str(ApplicationId.parse("application_1_1")) == "application_1_0001"
    assert str(ApplicationAttemptId.parse("appattempt_1_1_1")) == "appattempt_1_0001_000001"
    assert str(ContainerId.parse("container_e3_1_1_1_1")) == "container_e03_1_0001_01_000001"


@pytest.mark.parametrize("text", ["", "application_1_", "application_x_0001", "application_1_0001\n", "../etc"])
def test_what_is_no_application_id_is_refused(text: str) -> None:
    with pytest.raises(BadIdentifier):
        ApplicationId.parse(text)


def test_a_node_id_needs_a_port_in_range() -> None:
    assert NodeId.parse("127.0.0.1:8041") == NodeId("127.0.0.1", 8041)
    with pytest.raises(BadIdentifier):
        NodeId.parse("host:99999")


amounts = st.integers(-(10**6), 10**6)
resources = st.builds(
    Resource, amounts, amounts, st.dictionaries(st.sampled_from(["yarn.io/gpu", "yarn.io/fpga"]), amounts)
)


@given(resources, resources)
def test_subtraction_undoes_addition(a: Resource, b: Resource) -> None:
    assert ((a + b) - b - a).is_zero()
    assert a.fits_in(a)
