#!/usr/bin/env bash
# Each figure that README and docs claim, with the command that shows it and what that says today:
#   scripts/claims.sh            scaled down, five minutes a command at most; scripts/nightly.sh runs it
#   scripts/claims.sh --full     at full size: many hours
#   scripts/claims.sh --list     claims and commands alone        --check    every command exists (fast, in CI)
#   scripts/claims.sh README.md  these pages alone
# Exit code 1: a command failed, or with --check is missing. Other figures than those claimed are no failure: read them.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$(scripts/setup.sh dev)
exec "$venv/bin/python" scripts/claims.py "$@"
