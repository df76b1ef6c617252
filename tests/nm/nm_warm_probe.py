"""Preloaded by the prepared process in tests: makes the entries beside it importable as the job manager's."""

from pathlib import Path

import tez_adapter

tez_adapter.__path__.append(str(Path(__file__).parent / "warm_entries"))
