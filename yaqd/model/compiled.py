"""Whether what decides is compiled (docs/install.md, "A compiled wheel")."""

from importlib.util import find_spec


def is_compiled() -> bool:
    """Tell whether what decides is compiled here."""
    found = find_spec("rm.scheduler.scheduler")
    return found is not None and found.origin is not None and not found.origin.endswith(".py")
