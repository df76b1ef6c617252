"""TeraSort: records of ten key bytes and ninety others, in one total order over all parts."""

from yaqd.mapreduce import Job


class TeraSort(Job):
    input_format = "fixed:10+90"
    output_format = "raw"
    partitioner = "range"
    reduces = 2
