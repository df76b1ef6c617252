"""What a shell offers for configuration keys. Everything is imported when a shell asks."""

import click


def keys(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from yaqd.config.catalogue import documented_names

    return sorted(name for name in documented_names() if name.startswith(incomplete))


def settings(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """List the keys as `KEY=`, for a value to follow."""
    return [] if "=" in incomplete else [f"{name}=" for name in keys(ctx, param, incomplete)]
