#!/usr/bin/env bash
# All checks and tests. Arguments go to pytest:  scripts/test.sh -m "not slow and not interop"
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$(scripts/setup.sh dev)
export PATH="$venv/bin:$PATH"
ruff check .
ruff format --check .
mypy
lint-imports
exec python -m pytest "$@"
