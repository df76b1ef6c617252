"""The `yaq` command: a skin over the library, one module per group, each imported when it is used."""


def main() -> None:
    """Entry point of the `yaq` script."""
    from yaqd.cli.app import yaq

    yaq()


__all__ = ["main"]
