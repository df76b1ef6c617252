"""Whether the file system that a local cluster is to use answers: asked before anything of the cluster is made."""

from yaqd.cli.local.site import LocalShape
from yaqd.config import Configuration

#: a NameNode with nothing to say for so long would hold up every job as well, seconds
ANSWER_TIMEOUT_S = 10.0


def check_file_system(shape: LocalShape, timeout_s: float) -> None:
    """Check that the HDFS answers, if the cluster has one.

    Raises StorageUnavailable where it does not within `timeout_s` or ANSWER_TIMEOUT_S, whichever is less.
    """
    uri = shape.defines.get("fs.defaultFS") or shape.hdfs
    if not uri or not uri.startswith("hdfs://"):
        return
    from yaqd.storage.hdfs.alive import check_namenode
    from yaqd.storage.paths import hadoop_user, locate

    # as the daemons will read it: only what the cluster was told, nothing of the caller's own configuration
    conf = Configuration.load(environ={}, overrides={**shape.defines, "fs.defaultFS": uri})
    check_namenode(locate(uri, conf).authority, conf, hadoop_user(), min(timeout_s, ANSWER_TIMEOUT_S))
