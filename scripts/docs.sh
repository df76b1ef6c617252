#!/usr/bin/env bash
# Writes the generated references in docs/: configuration, command line, compatibility (needs the project
# installed), and the table of systems' parameters in docs/simulator.md.
set -euo pipefail
cd "$(dirname "$0")/.."
for name in configuration:yaqd.config cli:yaqd.cli compatibility:yaqd.cli.compatibility; do
  "${PYTHON:-python3}" -m "${name#*:}.reference" > "docs/${name%:*}.md.new"
  mv "docs/${name%:*}.md.new" "docs/${name%:*}.md"
done
"${PYTHON:-python3}" -m yaqd.cli.simulation.parameters docs/simulator.md
