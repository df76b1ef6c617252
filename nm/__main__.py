"""`python -m nm`: a NodeManager in the foreground, configured by HADOOP_CONF_DIR."""

import logging
import sys

from nm.foreground import main
from yaqd.config import ConfigError, Configuration

if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        configuration = Configuration.load()
    except ConfigError as error:
        print(f"NodeManager: {error}", file=sys.stderr)
        sys.exit(2)
    sys.exit(main(configuration))
