#!/usr/bin/env bash
# kill -9 of tasks, job managers, NodeManagers and the ResourceManager at random moments while jobs run:
#   scripts/faults.sh --kills 300 --seed 1
# Exit code 0: every acknowledged job ended right, and nothing was left over.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$(scripts/setup.sh dev)
export PATH="$venv/bin:$PATH"
exec python tests/faults "$@"
