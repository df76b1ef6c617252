#!/usr/bin/env bash
# Random awkward MapReduce and streaming jobs on a cluster of two nodes, in one process and on stock Hadoop Streaming:
#   scripts/differential.sh --seed 1 --cases 200     the cases 0 to 199 of a seed
#   scripts/differential.sh --seed 1 --case 17       one of them, as a failure prints it
#   scripts/differential.sh --stock-daemons --cases 40   stock Hadoop on its own daemons, some 20 s a job
# Exit code 0: all sides said the same.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$(scripts/setup.sh dev)
export PATH="$venv/bin:$PATH"
exec python tests/differential "$@"
