#!/usr/bin/env bash
# Runs a command in a copy of this checkout whose scheduler, node queues and simulator are compiled (pyproject.toml,
# tool.yaqd.compiled). Needs a C compiler and Python's headers. The first run of a state of the sources compiles: a
# minute or two.
#   scripts/compiled.sh COMMAND...     e.g. scripts/compiled.sh python -m benchmarks.scheduler --only core-queues
#   scripts/compiled.sh                prints the copy's folder
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$(scripts/setup.sh dev)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/yaqd/compiled-$(pwd -P | sha256sum | cut -c1-12)
files() { git ls-files -z --cached --others --exclude-standard; }
state=$(files | xargs -0 sha256sum 2>/dev/null | sha256sum | cut -c1-16)
if [ ! -e "$cache/.yaqd-$state" ]; then
  rm -rf "$cache"
  mkdir -p "$cache"
  files | tar --null --files-from=- --ignore-failed-read -cf - 2>/dev/null | tar -xf - -C "$cache"
  echo "compiling in $cache ..." >&2
  "$venv/bin/python" scripts/compiled.py "$cache" > "$cache/compiled.log" 2>&1 ||
    { tail -n 20 "$cache/compiled.log" >&2; echo "could not compile: $cache/compiled.log" >&2; exit 2; }
  touch "$cache/.yaqd-$state"
fi
[ $# -ne 0 ] || { echo "$cache"; exit; }
cd "$cache"
export PATH="$venv/bin:$PATH" PYTHONPATH="$cache"
exec "$@"
