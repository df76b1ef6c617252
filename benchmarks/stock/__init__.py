"""Stock Hadoop on this machine: what tests compare with and benchmarks race against."""
