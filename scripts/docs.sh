#!/usr/bin/env bash
# Writes the generated references in docs/: configuration, command line, compatibility (needs the project
# installed), and the table of systems' parameters in docs/simulator.md. Then checks the sentences of all pages
# (scripts/prose.py) and builds the site into build/site, where a link that leads nowhere is an error (needs the
# dev extra).
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
for name in configuration:yaqd.config cli:yaqd.cli compatibility:yaqd.cli.compatibility; do
  "$python" -m "${name#*:}.reference" > "docs/${name%:*}.md.new"
  mv "docs/${name%:*}.md.new" "docs/${name%:*}.md"
done
"$python" -m yaqd.cli.simulation.parameters docs/simulator.md
"$python" scripts/prose.py
"$python" -m mkdocs build --strict --quiet
