"""The `yaq` command: a skin over the library, one module per group, each imported when it is used."""

import sys
from typing import Final

#: the root context's object where `yaq` is the whole program: such a process may take its own place
PROGRAM: Final = object()


def main() -> None:
    """Run the `yaq` script."""
    from yaqd.cli.app import yaq

    try:
        yaq(obj=PROGRAM)
    except SystemExit as end:
        background = sys.modules.get("tez_adapter.background")
        if background is not None and isinstance(end.code, int | None):
            background.leave(end.code or 0)
        raise


__all__ = ["PROGRAM", "main"]
