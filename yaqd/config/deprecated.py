"""Old names that Hadoop still accepts (its DeprecatedProperties page) and that people still type: read as the new."""

from typing import Final

CURRENT_NAMES: Final[dict[str, str]] = {
    "fs.default.name": "fs.defaultFS",
    "dfs.block.size": "dfs.blocksize",
    "dfs.permissions": "dfs.permissions.enabled",
    "io.sort.factor": "mapreduce.task.io.sort.factor",
    "io.sort.mb": "mapreduce.task.io.sort.mb",
    "mapred.cache.archives": "mapreduce.job.cache.archives",
    "mapred.cache.files": "mapreduce.job.cache.files",
    "mapred.child.env": "mapreduce.map.env",
    "mapred.compress.map.output": "mapreduce.map.output.compress",
    "mapred.input.dir": "mapreduce.input.fileinputformat.inputdir",
    "mapred.job.map.memory.mb": "mapreduce.map.memory.mb",
    "mapred.job.name": "mapreduce.job.name",
    "mapred.job.priority": "mapreduce.job.priority",
    "mapred.job.queue.name": "mapreduce.job.queuename",
    "mapred.job.reduce.memory.mb": "mapreduce.reduce.memory.mb",
    "mapred.map.max.attempts": "mapreduce.map.maxattempts",
    "mapred.map.output.compression.codec": "mapreduce.map.output.compress.codec",
    "mapred.map.tasks": "mapreduce.job.maps",
    "mapred.max.split.size": "mapreduce.input.fileinputformat.split.maxsize",
    "mapred.min.split.size": "mapreduce.input.fileinputformat.split.minsize",
    "mapred.output.dir": "mapreduce.output.fileoutputformat.outputdir",
    "mapred.reduce.max.attempts": "mapreduce.reduce.maxattempts",
    "mapred.reduce.slowstart.completed.maps": "mapreduce.job.reduce.slowstart.completedmaps",
    "mapred.reduce.tasks": "mapreduce.job.reduces",
    "mapred.task.timeout": "mapreduce.task.timeout",
    "mapred.textoutputformat.separator": "mapreduce.output.textoutputformat.separator",
    "mapreduce.job.counters.limit": "mapreduce.job.counters.max",
    "topology.script.file.name": "net.topology.script.file.name",
}


def current_name(name: str) -> str:
    return CURRENT_NAMES.get(name, name)
