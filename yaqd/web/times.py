"""Times as pages show them."""

import time


def shown(epoch_ms: int) -> str:
    """Show a time as UTC to the second; nothing for what has not happened."""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(epoch_ms / 1000)) if epoch_ms > 0 else ""
