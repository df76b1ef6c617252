#!/usr/bin/env bash
# Makes the project's environment if need be, then: a cluster, a word count on it, the proof, and nothing left behind.
#   scripts/demo.sh [--input FILE_OR_FOLDER] [--size MB] [--keep]
set -euo pipefail
venv=$("$(dirname "$0")/setup.sh")
exec "$venv/bin/yaq" demo "$@"
