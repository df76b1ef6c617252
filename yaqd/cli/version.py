"""What `yaq --version` says."""

from importlib.metadata import version
from importlib.util import find_spec

import click


def is_compiled() -> bool:
    """Tell whether what decides is compiled here (docs/install.md, "A compiled wheel")."""
    found = find_spec("rm.scheduler.scheduler")
    return found is not None and found.origin is not None and not found.origin.endswith(".py")


def show_version(ctx: click.Context, _: click.Parameter, is_asked: bool) -> None:
    """Print it and end, where the option is given."""
    if is_asked and not ctx.resilient_parsing:
        click.echo(f"yaq {version('yaqd')}{' (compiled)' if is_compiled() else ''}")
        ctx.exit()
