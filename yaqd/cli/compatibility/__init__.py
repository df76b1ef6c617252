"""What unmodified Hadoop programs find here, told from the code: methods served and refused, keys, differences."""
