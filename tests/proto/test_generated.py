"""The committed modules are what the .proto files generate, and the numbers are Hadoop's."""

import subprocess
import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from yaqd.model import (
    ApplicationAttemptId,
    ApplicationId,
    ContainerId,
    ContainerState,
    ExecutionType,
    FinalApplicationStatus,
    NodeState,
    Resource,
    YarnApplicationAttemptState,
    YarnApplicationState,
)
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as pb

ROOT = Path(__file__).resolve().parents[2]


def test_generated_modules_are_current(tmp_path: Path) -> None:
    protos = sorted(str(p.relative_to(ROOT)) for p in (ROOT / "yaqd/proto").glob("*.proto"))
    subprocess.run(
        [
            sys.executable,
            "-m",
            "grpc_tools.protoc",
            "-I.",
            f"--python_out={tmp_path}",
            f"--pyi_out={tmp_path}",
            *protos,
        ],
        cwd=ROOT,
        check=True,
    )
    for generated in sorted((tmp_path / "yaqd/proto").iterdir()):
        committed = ROOT / "yaqd/proto" / generated.name
        assert committed.read_text() == generated.read_text(), f"run scripts/proto.sh: {generated.name} is stale"


def test_enum_numbers_agree_with_the_messages() -> None:
    for model, message, prefix in [
        (YarnApplicationState, pb.YarnApplicationState, ""),
        (YarnApplicationAttemptState, pb.YarnApplicationAttemptState, "APP_ATTEMPT_"),
        (FinalApplicationStatus, pb.FinalApplicationStatus, "APP_"),
        (ContainerState, pb.ContainerState, "C_"),
        (ExecutionType, pb.ExecutionType, ""),
        (NodeState, pb.NodeState, "NS_"),
    ]:
        assert {prefix + m.name: int(m) for m in model} == dict(message.items())


ids = st.builds(
    ContainerId,
    st.builds(
        ApplicationAttemptId,
        st.builds(ApplicationId, st.integers(0, 2**62), st.integers(1, 2**31 - 1)),
        st.integers(1, 2**31 - 1),
    ),
    st.integers(-(2**63), 2**63 - 1),
)


@given(ids)
def test_container_ids_cross_the_border_unchanged(value: ContainerId) -> None:
    message = pb.ContainerId.FromString(convert.container_id_pb(value).SerializeToString())
    assert not message.HasField("app_id")
    assert convert.container_id(message) == value


@given(st.integers(0, 2**40), st.integers(0, 2**20), st.dictionaries(st.just("yarn.io/gpu"), st.integers(1, 64)))
def test_resources_cross_the_border_unchanged(memory: int, vcores: int, extras: dict[str, int]) -> None:
    value = Resource(memory, vcores, extras)
    assert convert.resource(pb.Resource.FromString(convert.resource_pb(value).SerializeToString())) == value
