#!/usr/bin/env bash
# Regenerates the protobuf modules beside their .proto files (needs the dev extra).
set -euo pipefail
cd "$(dirname "$0")/.."
exec "${PYTHON:-python3}" -m grpc_tools.protoc -I. --python_out=. --pyi_out=. yaqd/proto/*.proto
