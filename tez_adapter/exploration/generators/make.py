"""Generators by name."""

from collections.abc import Callable
from typing import Final

from tez_adapter.exploration.generators.adaptive import AdaptiveGenerator
from tez_adapter.exploration.generators.generator import Generator, GeneratorError
from tez_adapter.exploration.generators.plain import FileGenerator, GridGenerator, RandomGenerator
from yaqd.ml.space import Space

GENERATORS: Final = ("random", "grid", "file", "tpe", "gp")
ADAPTIVE: Final = ("tpe", "gp")


def make_generator(
    name: str,
    space: Space | None,
    *,
    seed: int,
    trials: int,
    configurations: str = "",
    where: str = "the file",
    note: Callable[[str], None] = lambda line: None,
) -> Generator:
    """Return the generator of this name. `configurations`: the text of a file of JSON lines, which `where` names.

    GeneratorError: there is none of that name, or it cannot be made.
    """
    if name == "file":
        return FileGenerator(configurations, space, where)
    if name not in GENERATORS:
        raise GeneratorError(f"no generator {name!r}: use one of {', '.join(GENERATORS)}")
    if space is None:
        raise GeneratorError(f"generator {name} draws from a space: give one with --space FILE")
    if name == "grid":
        return GridGenerator(space, seed, trials)
    return RandomGenerator(space, seed) if name == "random" else AdaptiveGenerator(name, space, seed, note=note)
