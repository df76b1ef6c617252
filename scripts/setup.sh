#!/usr/bin/env bash
# Makes the project's own Python environment and installs into it; prints nothing when it is already right.
#   scripts/setup.sh [EXTRA...]     e.g. scripts/setup.sh dev
# The environment stands in $YAQD_VENV, by default ~/.cache/yaqd/venv-<hash of this checkout>.
set -euo pipefail
cd "$(dirname "$0")/.."
extras=$(IFS=,; echo "$*")
venv=${YAQD_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/yaqd/venv-$(pwd -P | sha256sum | cut -c1-12)}
stamp="$venv/.yaqd-$(sha256sum pyproject.toml | cut -c1-16)-${extras:-none}"
if [ ! -e "$stamp" ]; then
  python=$(command -v python3.11 || command -v python3)
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    { echo "yaqd needs Python 3.11 or newer; $python is $("$python" --version)" >&2; exit 2; }
  echo "setting up $venv ..." >&2
  "$python" -m venv "$venv" || { echo "python3 -m venv failed: install the package python3-venv" >&2; exit 2; }
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -e ".${extras:+[$extras]}" >&2
  rm -f "$venv"/.yaqd-*
  touch "$stamp"
fi
echo "$venv"
