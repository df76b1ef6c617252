"""The process that runs tasks, and a task itself: reading, the program, writing."""
