"""Keys that mean what Hadoop's do but have another default here: Hadoop's, by its *-default.xml of HADOOP_VERSION.

The compatibility page shows them beside ours. An interop test compares this table with Hadoop's own files.
"""

from typing import Final

#: key -> Hadoop's default
HADOOP_DEFAULTS: Final = {
    "mapreduce.framework.name": "local",
    "mapreduce.map.memory.mb": "-1",
    "mapreduce.reduce.memory.mb": "-1",
    "mapreduce.task.io.sort.mb": "100",
    "mapreduce.map.output.compress": "false",
    "mapreduce.map.output.compress.codec": "org.apache.hadoop.io.compress.DefaultCodec",
    "mapreduce.reduce.shuffle.parallelcopies": "5",
    "mapreduce.output.fileoutputformat.compress.codec": "org.apache.hadoop.io.compress.DefaultCodec",
    "yarn.admin.acl": "*",
    "yarn.nodemanager.amrmproxy.address": "0.0.0.0:8049",
    "yarn.nodemanager.hostname": "0.0.0.0",
    "yarn.nodemanager.logaggregation.threadpool-size-max": "100",
    "yarn.resourcemanager.hostname": "0.0.0.0",
    "net.topology.node.switch.mapping.impl": "org.apache.hadoop.net.ScriptBasedMapping",
    "dfs.client.failover.max.attempts": "15",
}
