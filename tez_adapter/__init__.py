"""The job manager: runs MapReduce, streaming and command jobs on any YARN cluster, and the tasks they are made of."""
