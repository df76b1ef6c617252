"""Programs as mapper, combiner and reducer: their pipes, formats and settings, as Hadoop Streaming has them."""
