#!/usr/bin/env bash
# Writes the generated references: docs/configuration.md and docs/cli.md.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="${YAQD_PATH:-$(scripts/setup.sh dev)/bin}:$PATH"
python -m yaqd.cli conf docs > docs/configuration.md.new
python -m yaqd.cli.reference > docs/cli.md.new
mv docs/configuration.md.new docs/configuration.md
mv docs/cli.md.new docs/cli.md
