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
lint-imports
if [ $# -ne 0 ]; then
  mypy
  exec python -m pytest "$@"
fi
# Three at a time: the types, the tests with real Hadoop programs, two workers with all others. Most tests wait for
# daemons more than they compute.
said=$(mktemp -d)
trap 'rm -rf "$said"; kill ${types:-} ${stock:-} 2>/dev/null || true' EXIT
failed=0
mypy > "$said/types" 2>&1 &
types=$!
python -m pytest --durations=10 -m "interop and not full" > "$said/stock" 2>&1 &
stock=$!
python -m pytest -n 2 --dist loadscope --no-loadscope-reorder --durations=20 -m "not interop and not full" |
  tee "$said/others" || failed=$?
for part in types stock; do
  wait "${!part}" || failed=$?
  declare "$part="
  cat "$said/$part"
done
# Who reads the end alone sees what failed, in whichever part.
grep -hE '^(FAILED|ERROR) |: error: |^[0-9]+ (passed|failed)' "$said"/* || true
exit $failed
