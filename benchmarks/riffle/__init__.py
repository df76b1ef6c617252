"""Few large reads in place of many small ones: `python -m benchmarks.riffle`. Each module here has some of the rows."""
