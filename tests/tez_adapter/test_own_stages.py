"""A flow's idle containers under a ResourceManager that does not decide about stages."""

from pathlib import Path

import pytest

from tests.policies.clotho.scenes import random_job, scene
from tests.tez_adapter.tez_stages import Ordered, after, stages
from tez_adapter.core.states import JobState
from tez_adapter.master.own_stages import OwnStages
from yaqd.config import ConfigError, Configuration
from yaqd.config.stage_weights import shipped_weights
from yaqd.policies.clotho.heuristics import WeightedFair
from yaqd.policies.clotho.learned import Learned
from yaqd.policies.clotho.policies import Chooser
from yaqd.policies.clotho.weights import pack, unpack
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.words import STAGES

STOCK = pb.RegisterApplicationMasterResponse()
OURS = pb.RegisterApplicationMasterResponse(yaq_understands=[STAGES])


class Alone(Ordered):
    """A job that decides by itself after each event."""

    def __init__(self, *tasks: int, policy: str = "shortest", edges: tuple[tuple[int, int], ...] = ()) -> None:
        spec = stages(*tasks, edges=tuple(after(*edge) for edge in edges), task_s=1.0)
        super().__init__(spec, decides=False)
        self.own = OwnStages(self.machine, Chooser(policy))
        self.own.registered(STOCK)
        self.decides()

    def decides(self) -> list[tuple[tuple[int, int], ...]]:
        """Follow until there is nothing to say; return the shares of the orders."""
        said = []
        while (ordered := self.own.follow(self.now)) is not None:
            said.append(ordered.order.shares)
            self(ordered)
        return said


def test_the_policy_says_which_stage_goes_on() -> None:
    # the second stage is short, the third has two more behind it
    job = Alone(1, 2, 2, 2, 2, edges=((0, 1), (0, 2), (2, 3), (3, 4)))
    job.start("c0")
    job.done("c0")
    assert job.decides() == [((30, 1),)]
    assert job.attempt_in("c0").vertex == 2


def test_a_fifo_goes_by_number() -> None:
    job = Alone(1, 2, 2, 2, policy="fifo", edges=((0, 1), (0, 2), (2, 3)))
    job.start("c0")
    job.done("c0")
    assert job.decides() == [((20, 1),)]
    assert job.attempt_in("c0").vertex == 1


def test_it_is_not_asked_again_until_something_changes() -> None:
    job = Alone(2, 3, policy="fair", edges=((0, 1),))
    job.start("c0")
    job.start("c1")
    job.done("c0")
    # the next stage is about to open: the container waits for it
    assert job.decides() == [((20, 1),)]
    assert job.decides() == []
    job.done("c1")
    job.decides()
    assert {job.attempt_in(name).vertex for name in ("c0", "c1")} == {1}


def test_a_resource_manager_that_decides_is_left_to_it() -> None:
    job = Alone(1, 2)
    job.own.registered(OURS)
    assert job.own.follow(job.now) is None


def test_a_job_that_is_over_decides_nothing() -> None:
    job = Alone(1)
    job.start("c0")
    job.done("c0")
    assert job.machine.state is JobState.SUCCEEDED
    assert job.decides() == []


def test_an_unknown_policy_is_refused_with_its_key() -> None:
    conf = Configuration.load().with_overrides({"yaq.clotho.policy": "magic"})
    with pytest.raises(ConfigError, match=r"yaq.clotho.policy.*there is none; known: clotho, fifo, "):
        OwnStages.of(conf, Alone(1).machine)


def _of(path: Path) -> OwnStages:
    return OwnStages.of(Configuration.load().with_overrides({"yaq.clotho.weights": str(path)}), Alone(1).machine)


def test_it_decides_by_the_weights_that_the_configuration_names(tmp_path: Path) -> None:
    weights = unpack(shipped_weights()).flat()
    (tmp_path / "own.npz").write_bytes(pack(-weights, {}))
    policy = _of(tmp_path / "own.npz")._chooser.policy
    assert isinstance(policy, Learned)
    job = random_job(3)
    ours, shipped = policy.scores(scene(job)), Learned(shipped_weights()).scores(scene(job))
    assert ours is not None and shipped is not None and (ours.score != shipped.score).any()


@pytest.mark.parametrize("data", [None, b"none"], ids=["absent", "damaged"])
def test_without_weights_that_load_weighted_fair_sharing_decides_and_the_log_says_why(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, data: bytes | None
) -> None:
    path = tmp_path / "own.npz"
    if data is not None:
        path.write_bytes(data)
    for response in (OURS, STOCK):
        own = _of(path)
        assert not caplog.messages, "a ResourceManager that decides does so by weights of its own"
        own.registered(response)
    found = scene(random_job(3), random_job(4), source=0)
    assert own._chooser.choose(found) == WeightedFair().choose(found)
    (line,) = caplog.messages
    assert str(path) in line and "No such file" in line if data is None else "no .npz of plain arrays" in line
    assert "weighted-fair decides" in line or "weighted fair sharing decides" in line
