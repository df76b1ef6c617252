#!/usr/bin/env bash
# Stock Hadoop for comparison, pinned and cached outside the checkout:
#   scripts/hadoop.sh fetch                                  fetches the jars (needs Java and Maven), prints their folder
#   scripts/hadoop.sh start --dir D [--hdfs-only] [--nodes N]  starts it on loopback and free ports, prints HADOOP_CONF_DIR
#   scripts/hadoop.sh stop --dir D
set -euo pipefail
cd "$(dirname "$0")/.."
exec "${PYTHON:-python3}" -m benchmarks.stock "$@"
