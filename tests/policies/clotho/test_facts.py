"""Facts of stages: graphs that are none are refused, and what follows from facts is what a walk over them finds."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.policies.clotho.scenes import chain, job, random_job, scene
from yaqd.policies.clotho.facts import STAGES_MAX, StageJob, bounded_s, graph_of
from yaqd.policies.clotho.known import CHAIN, CHAIN_WORK, CLAIMABLE, KnownJobs


@pytest.mark.parametrize(
    ("many", "edges", "said"),
    [
        (0, [], "0 stages"),
        (STAGES_MAX + 1, [], "10001 stages"),
        (2, [(0, 2)], "there are 2 stages"),
        (2, [(-1, 1)], "there are 2 stages"),
        (1, [(0, 0)], "circle"),
        (3, [(0, 1), (1, 2), (2, 0)], "circle"),
    ],
)
def test_what_is_no_graph_is_refused(many: int, edges: list[tuple[int, int]], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        graph_of(many, edges)


def test_ten_thousand_stages_in_a_row_are_a_graph() -> None:
    assert chain(STAGES_MAX).height[0] == STAGES_MAX - 1


def test_durations_that_cannot_be_are_unknown() -> None:
    found = bounded_s([1.0, -1.0, float("nan"), float("inf"), 1e300], 6)
    assert found[0] == 1.0
    assert np.isnan(found[1:]).all()


def test_an_unknown_duration_counts_as_the_mean_of_the_jobs_known_ones() -> None:
    partly, unknown = job(chain(2), [4, 1], [3.0, float("nan")]), job(chain(1), [4], float("nan"))
    seen = KnownJobs()
    assert [one.work_s for one in seen.known(scene(partly, unknown))] == [15.0, 4.0]
    assert seen.known(replace(scene(partly, unknown), unknown_s=2.0))[1].work_s == 8.0


def _chains(one: StageJob, duration_s: list[float]) -> tuple[list[float], list[float]]:
    """Return the longest chains by recursion, as they are defined."""
    after: dict[int, list[int]] = {}
    for parent, child in zip(one.graph.parent.tolist(), one.graph.child.tolist(), strict=True):
        after.setdefault(parent, []).append(child)

    def longest(stage: int, own: list[float]) -> float:
        return own[stage] + max((longest(child, own) for child in after.get(stage, [])), default=0.0)

    left = one.unfinished.tolist()
    single = [taken if many else 0.0 for taken, many in zip(duration_s, left, strict=True)]
    work = [taken * many for taken, many in zip(duration_s, left, strict=True)]
    stages = range(len(left))
    return [longest(stage, single) for stage in stages], [longest(stage, work) for stage in stages]


@settings(deadline=None, max_examples=examples(40))
@given(st.lists(st.integers(0, 1_000), min_size=1, max_size=5))
def test_chains_of_many_jobs_at_once_are_those_of_each(seeds: list[int]) -> None:
    jobs = [random_job(seed) for seed in seeds]
    found = scene(*jobs)
    for one, known in zip(jobs, KnownJobs().known(found), strict=True):
        is_known = ~np.isnan(one.duration_s)
        mean = one.duration_s[is_known].mean() if is_known.any() else found.unknown_s
        durations = np.where(is_known, one.duration_s, mean).tolist()
        single, work = _chains(one, durations)
        stages = known.stages.tolist()
        assert known.facts[:, CHAIN].tolist() == pytest.approx([single[stage] for stage in stages])
        assert known.facts[:, CHAIN_WORK].tolist() == pytest.approx([work[stage] for stage in stages])
        assert known.work_s == pytest.approx(float((np.array(durations) * one.unfinished).sum()))
        waiting = set(one.graph.child[one.unclaimed[one.graph.parent] > 0].tolist())
        assert stages == [at for at, many in enumerate(one.unclaimed.tolist()) if many and at not in waiting]
        assert known.facts[:, CLAIMABLE].tolist() == one.unclaimed[known.stages].tolist()
