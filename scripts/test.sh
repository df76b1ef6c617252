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
# Two at a time, and beside them those with real Hadoop programs: most tests wait for daemons more than they compute.
said=$(mktemp -d)
trap 'rm -rf "$said"; [ -z "${beside:-}" ] || kill "$beside" 2>/dev/null' EXIT
failed=0
python -m pytest --durations=10 -m "interop and not full" > "$said/stock" 2>&1 &
beside=$!
# The rooms that decide are measured: Python 3.11's tracer would make all tests a third slower.
pure=(tests/policies tests/rm)
two_at_a_time() {
  python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m "not interop and not full" "${@:2}" |
    tee "$said/$1" || failed=$?
}
two_at_a_time pure "${pure[@]}" --cov=rm/scheduler --cov=yaqd/policies --cov-report=term:skip-covered
two_at_a_time others "${pure[@]/#/--ignore=}" --durations=20
wait "$beside" || failed=$?
beside=
cat "$said/stock"
# Who reads the end alone sees what failed, in whichever part.
grep -hE '^(FAILED|ERROR) |^[0-9]+ (passed|failed)' "$said"/* || true
exit $failed
