"""The `yaq` command: a skin over the library, one module per group, each imported when it is used."""

import sys


def main() -> None:
    """Entry point of the `yaq` script."""
    from yaqd.cli.app import yaq

    try:
        yaq()
    except SystemExit as end:
        background = sys.modules.get("tez_adapter.background")
        if background is not None and isinstance(end.code, int | None):
            background.leave(end.code or 0)
        raise


__all__ = ["main"]
