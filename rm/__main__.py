"""`python -m rm`: a ResourceManager in the foreground with the configuration of $HADOOP_CONF_DIR."""

import logging
import sys

from rm.foreground import main
from yaqd.config import ConfigError, Configuration

if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    try:
        configuration = Configuration.load()
    except ConfigError as error:
        print(f"ResourceManager: {error}", file=sys.stderr)
        sys.exit(2)
    sys.exit(main(configuration))
