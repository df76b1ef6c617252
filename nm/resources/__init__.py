"""A node's memory, processors, disks, GPUs and processes: what there is, and what is used."""
