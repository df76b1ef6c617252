#!/usr/bin/env bash
# Unmodified Hadoop programs on our daemons, with a real HDFS: fetches pinned stock Hadoop, starts everything, runs the
# list, prints a table with times. Without Java or Maven it says so and skips; with CI=true that is a failure.
#   scripts/interop.sh            one program of each kind
#   scripts/interop.sh --full     all of them
# Further arguments go to pytest, e.g. -k pi.
set -euo pipefail
cd "$(dirname "$0")/.."
selection="interop and representative"
if [ "${1:-}" = --full ]; then
  selection=interop
  shift
fi
venv=$(scripts/setup.sh dev)
# Else every one of some hundred processes compiles all that it imports, and each pytest its tests.
unset PYTHONDONTWRITEBYTECODE
exec "$venv/bin/python" -m pytest tests/interop -m "$selection" -rs "$@"
