#!/usr/bin/env bash
# All checks and tests, but for further ones of a kind with real Hadoop (scripts/interop.sh --full).
# Arguments go to pytest:  scripts/test.sh -m "not slow and not interop"
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$(scripts/setup.sh dev)
export PATH="$venv/bin:$PATH"
# Else every one of some hundred processes compiles all that it imports, and each pytest its tests.
unset PYTHONDONTWRITEBYTECODE
ruff check .
ruff format --check .
mypy
lint-imports
[ $# -eq 0 ] || exec python -m pytest "$@"
# Two at a time, but for those with real Hadoop programs, which fill a machine of two cores by themselves.
failed=0
python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m "not interop and not full" || failed=$?
python -m pytest -m "interop and not full" || failed=$?
exit $failed
