#!/usr/bin/env bash
# What takes too long for every commit: coverage, all stock programs, new random cases, faults, damaged messages,
# small benchmarks, and each figure that README and docs claim beside today's.
#   scripts/nightly.sh [SEED]     SEED: a number, by default the day's
# Takes hours on two cores. Exit code 0: every part passed. Each part's output is in $YAQD_NIGHTLY, by default
# ./nightly-SEED.
set -uo pipefail
cd "$(dirname "$0")/.."
seed=${1:-$(date +%Y%j)}
out=${YAQD_NIGHTLY:-nightly-$seed}
venv=$(scripts/setup.sh dev) || exit
mkdir -p "$out"
failed=0

part() {
  local name=$1 began=$SECONDS ended=passed
  shift
  "$@" > "$out/$name.txt" 2>&1 || { ended="FAILED with $?"; failed=1; }
  printf '%-28s %s in %d s\n' "$name" "$ended" $((SECONDS - began))
}

rooms=(--cov=yaqd --cov=rm --cov=nm --cov=riffle_merger --cov=tez_adapter)
part coverage "$venv/bin/python" -m pytest -n 2 --dist loadfile -m "not slow and not interop and not full" \
  "${rooms[@]}" --cov-report=term:skip-covered
grep '^TOTAL' "$out/coverage.txt" || true
part full "$venv/bin/python" -m pytest -n 2 --dist loadfile -m "full and not interop"
part interop scripts/interop.sh --full
part differential scripts/differential.sh --seed "$seed" --cases 400
part differential-stock-daemons scripts/differential.sh --stock-daemons --seed "$seed" --cases 20
part faults scripts/faults.sh --seed "$seed" --kills 100
part hostile "$venv/bin/python" tests/hostile --frames 1000000 --seed "$seed"
for name in launch mapreduce interop scheduler rm_load rm_bound; do
  part "bench-$name" "$venv/bin/python" -m "benchmarks.$name" --runs 1 --scale 0.1
done
part compiled scripts/compiled.sh python -m pytest -n 2 --dist loadfile -m "not interop and not full" tests/rm tests/nm tests/sim tests/policies
part claims scripts/claims.sh
exit $failed
