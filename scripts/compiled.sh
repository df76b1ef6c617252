#!/usr/bin/env bash
# Runs a command in a copy of this checkout whose scheduler, node queues and simulator are compiled (pyproject.toml,
# tool.yaqd.compiled). Needs a C compiler and Python's headers. The first run of a state of the sources compiles: a
# minute or two. The command runs in the copy: give it absolute paths.
#   scripts/compiled.sh COMMAND...     e.g. scripts/compiled.sh python -m benchmarks.scheduler --only core-queues
#   scripts/compiled.sh                prints the copy's folder
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$(scripts/setup.sh dev)
caches=${XDG_CACHE_HOME:-$HOME/.cache}/yaqd
files() {
  git ls-files -z --cached --others --exclude-standard |
    while IFS= read -r -d '' file; do [ ! -f "$file" ] || printf '%s\0' "$file"; done
}
# The state of the sources, and for which Python they are compiled.
state=$({ files | xargs -0 sha256sum; "$venv/bin/python" -c 'import sys; print(sys.version)'; } | sha256sum | cut -c1-16)
cache=$caches/compiled-$state
mkdir -p "$caches"
exec 9> "$caches/compiled.lock"
flock 9
if [ ! -d "$cache" ]; then
  # Copies of other states go after a week: a command may still run in them.
  find "$caches" -maxdepth 1 -name 'compiled-*' -type d -mtime +7 -exec rm -rf {} +
  making=$(mktemp -d "$caches/compiled-making-XXXXXX")
  trap 'rm -rf "$making"' EXIT
  echo "compiling in $cache ..." >&2
  files | tar --null --files-from=- -cf - | tar -xf - -C "$making"
  "$venv/bin/python" scripts/compiled.py "$making" > "$making/compiled.log" 2>&1 ||
    { tail -n 20 "$making/compiled.log" >&2; echo "could not compile the checkout" >&2; exit 2; }
  mv "$making" "$cache"
fi
exec 9>&-
[ $# -ne 0 ] || { echo "$cache"; exit; }
cd "$cache"
export PATH="$venv/bin:$PATH" PYTHONPATH="$cache"
exec "$@"
