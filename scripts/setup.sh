#!/usr/bin/env bash
# Makes the project's own Python environment and installs into it; prints nothing but its folder when it is right already.
#   scripts/setup.sh [EXTRA...]     e.g. scripts/setup.sh dev
#   scripts/setup.sh --latest dev   newer libraries, and their versions written into constraints.txt
# The environment stands in $YAQD_VENV, by default ~/.cache/yaqd/venv-<hash of this checkout>.
set -euo pipefail
cd "$(dirname "$0")/.."
latest=
if [ "${1:-}" = --latest ]; then
  latest=1
  shift
fi
extras=$(IFS=,; echo "$*")
venv=${YAQD_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/yaqd/venv-$(pwd -P | sha256sum | cut -c1-12)}
stamp="$venv/.yaqd-$(cat pyproject.toml constraints.txt | sha256sum | cut -c1-16)-${extras:-none}"
if [ -n "$latest" ] || [ ! -e "$stamp" ]; then
  python=$(command -v python3.11 || command -v python3)
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    { echo "yaqd needs Python 3.11 or newer; $python is $("$python" --version)" >&2; exit 2; }
  echo "setting up $venv ..." >&2
  "$python" -m venv "$venv" || { echo "python3 -m venv failed: install the package python3-venv" >&2; exit 2; }
  pip=("$venv/bin/python" -m pip --disable-pip-version-check)
  if [ -n "$latest" ]; then
    "${pip[@]}" install --quiet --upgrade --upgrade-strategy eager uv -e ".${extras:+[$extras]}" >&2
    { head -n 1 constraints.txt; "${pip[@]}" freeze --all --exclude pip --exclude-editable; } > constraints.new
    mv constraints.new constraints.txt
    stamp="$venv/.yaqd-$(cat pyproject.toml constraints.txt | sha256sum | cut -c1-16)-${extras:-none}"
  else
    # uv takes a third of pip's time for the same versions; where it cannot be had, pip does it.
    install=("${pip[@]}" install --quiet)
    if "${pip[@]}" install --quiet -c constraints.txt uv >&2; then
      install=("$venv/bin/uv" pip install --quiet --python "$venv/bin/python" --link-mode copy)
    fi
    "${install[@]}" -c constraints.txt -e ".${extras:+[$extras]}" >&2
  fi
  rm -f "$venv"/.yaqd-*
  touch "$stamp"
fi
echo "$venv"
