"""Settings of all tests: no property test fails because the machine is busy (pytest-timeout ends a hanging one)."""

from hypothesis import settings

settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
