"""Which Java a container will run, and what it must be told.

Stock MapReduce writes `<ADD_OPENS>` into its commands and leaves it to the node to know whether the JVM needs it. All
that is read here was named by an application: reads are bounded and never wait.
"""

import os
import re
import shutil
import stat
from functools import lru_cache
from pathlib import Path
from typing import Final

ADD_OPENS: Final = (
    "--add-opens=java.base/java.lang=ALL-UNNAMED --add-exports=java.base/sun.net.dns=ALL-UNNAMED "
    "--add-exports=java.base/sun.net.util=ALL-UNNAMED"
)
_JAVA_MAJOR: Final = re.compile(r'^JAVA_VERSION="(?:1\.)?(\d{1,6})', re.MULTILINE)
_RELEASE_BYTES_MAX: Final = 65536
_FOLDERS_MAX: Final = 256


def add_opens(java_home: str | None, search_path: str = "") -> str:
    """Returns JVM options that Java 17 and later need, by the `release` file of the containers' JDK; else "".

    Without a home it is the `java` that `search_path` finds. If there is none, or it does not tell its version, it
    counts as modern: without the options such a JVM fails at once, and old ones are rare.
    """
    if java_home:
        is_modern = (_major(Path(java_home)) or 0) >= 17
    else:
        is_modern = (_major_on(search_path) or 17) >= 17
    return ADD_OPENS if is_modern else ""


@lru_cache(maxsize=64)
def _major_on(search_path: str) -> int | None:
    folders = [folder for folder in search_path.split(":")[:_FOLDERS_MAX] if folder.startswith("/")]
    found = shutil.which("java", path=":".join(folders)) if folders else None
    if found is None:
        return None
    folder = Path(os.path.realpath(found)).parent.parent
    # Java 8's own `java` stands in jre/bin of its JDK
    return _major(folder) or (_major(folder.parent) if folder.name == "jre" else None)


def _major(home: Path) -> int | None:
    """The major version, or None where no readable `release` file tells it."""
    try:
        descriptor = os.open(home / "release", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        match = _JAVA_MAJOR.search(os.read(descriptor, _RELEASE_BYTES_MAX).decode(errors="replace"))
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return int(match[1]) if match else None
