"""Where the shipped defaults are: `conf/` in a source checkout, `yaqd/config/shipped` in an installed wheel."""

from functools import lru_cache
from pathlib import Path

from yaqd.config.errors import ConfigError
from yaqd.config.xmlfile import Property, read_properties

DEFAULTS_FILE = "yaq-default.xml"
QUEUES_FILE = "capacity-scheduler.xml"
ROOMS_DIR = "default.d"


@lru_cache(maxsize=1)
def shipped_dir() -> Path:
    here = Path(__file__).resolve().parent
    for candidate in (here / "shipped", here.parents[1] / "conf"):
        if (candidate / DEFAULTS_FILE).is_file():
            return candidate
    raise ConfigError(f"{DEFAULTS_FILE} is missing from this installation", remedy="install yaqd again")


@lru_cache(maxsize=1)
def shipped_properties() -> tuple[Property, ...]:
    """Return the common defaults, then each room's own file in name order; read once per process."""
    files = [shipped_dir() / DEFAULTS_FILE, *sorted((shipped_dir() / ROOMS_DIR).glob("*.xml"))]
    return tuple(found for file in files for found in read_properties(file))
