"""Commands that run a user's code as tasks do: with the same hash seed, so that sets and hashes are the same there."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from yaqd.cli import PROGRAM


def seeded(command: Callable[..., None]) -> Callable[..., None]:
    """Have the program start again with the seed, before anything else, so that nothing is said twice."""

    @wraps(command)
    def with_seed(*args: Any, **kwargs: Any) -> None:
        if click.get_current_context().find_root().obj is PROGRAM:
            from yaqd.model.hash_seed import start_again_with_seed

            start_again_with_seed()
        command(*args, **kwargs)

    return with_seed
