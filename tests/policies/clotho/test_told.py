"""What a master tells of its stages, as policies are told of it: bounded whatever it says."""

from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from yaqd.policies.clotho.told import ToldStages
from yaqd.policies.queueing.left import STAGES_MAX, WAITS_MAX, StageLeft, bounded


def heard(*messages: list[StageLeft]) -> ToldStages:
    stages = ToldStages()
    for message in messages:
        stages.hear(bounded(message), lambda priority: None)
    return stages


def test_new_graphs_each_time_do_not_add_up() -> None:
    stages = ToldStages()
    for number in range(20):
        stages.hear(bounded([StageLeft(number, 5, after=tuple(range(1_000)))]), lambda priority: None)
        assert sum(map(len, stages._known.values())) <= WAITS_MAX
    fresh = count()
    for _ in range(4):
        message = [StageLeft(next(fresh), 1) for _ in range(400)]
        stages.hear(bounded(message), lambda priority: None)
        assert len(stages.priorities) <= STAGES_MAX
        assert set(stages.priorities) >= {stage.priority for stage in message}


def test_stages_that_wait_for_each_other_in_a_circle_wait_for_nothing() -> None:
    circle = [StageLeft(1, 3, after=(2,)), StageLeft(2, 3, after=(1,)), StageLeft(3, 3, after=(2,))]
    assert heard(circle).is_open == [True, True, True]
    assert heard([StageLeft(1, 3, after=(1,))]).is_open == [True]


def test_a_stage_opens_when_what_it_waits_for_is_over_or_it_runs() -> None:
    first, second = StageLeft(1, 3), StageLeft(2, 3, after=(1,))
    assert heard([first, second]).is_open == [True, False]
    assert heard([first, second], [second]).is_open == [True, True]
    assert heard([first, StageLeft(2, 3, after=(1,), running=1)]).is_open == [True, True]
    assert heard([StageLeft(2, 3, after=(7,))]).is_open == [True], "nobody told of the other"


@given(
    st.lists(
        st.lists(
            st.builds(
                StageLeft,
                st.integers(0, 9),
                st.integers(0, 4),
                after=st.lists(st.integers(0, 9), max_size=4).map(tuple),
            ),
            max_size=8,
        ),
        min_size=1,
        max_size=4,
    )
)
def test_something_is_open_as_long_as_something_is_left(messages: list[list[StageLeft]]) -> None:
    stages = heard(*messages)
    left = [at for at, many in enumerate(stages.unfinished) if many]
    assert not left or any(stages.is_open[at] for at in left)
