"""How many examples a property test tries: all of them in a whole run, some in a run without the slow tests."""

from hypothesis import settings

#: of a hundred examples, how many a run without the slow tests tries; each such run tries others
FEW = 30


def examples(count: int) -> int:
    """Returns how many examples this run tries where a whole one tries `count`."""
    assert settings.default is not None
    return max(1, count * settings.default.max_examples // 100)
