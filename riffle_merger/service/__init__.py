"""The merger as a process: its protocol, its server, and its main function."""
