"""What `yaq --version` says."""

from importlib.metadata import version

import click

from yaqd.model.compiled import is_compiled


def show_version(ctx: click.Context, _: click.Parameter, is_asked: bool) -> None:
    """Print it and end, where the option is given."""
    if is_asked and not ctx.resilient_parsing:
        click.echo(f"yaq {version('yaqd')}{' (compiled)' if is_compiled() else ''}")
        ctx.exit()
