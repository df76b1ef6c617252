"""Entries that report what a warm task sees."""

import atexit
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path


def report(arguments: list[str]) -> int:
    import numpy

    facts = {
        "argv": arguments,
        "sys_argv": sys.argv[1:],
        "groups": Path("/proc/self/cgroup").read_text(),
        "cwd": str(Path.cwd()),
        "path0": sys.path[0],
        "pid": os.getpid(),
        "pgid": os.getpgid(0),
        "sid": os.getsid(0),
        "environment": dict(os.environ),
        "random": random.random(),
        "numpy_random": float(numpy.random.random()),
        "descriptors": sorted(int(entry.name) for entry in Path("/proc/self/fd").iterdir()),
        "sigterm": signal.getsignal(signal.SIGTERM) == signal.SIG_DFL,
        "main_thread": threading.current_thread() is threading.main_thread(),
        "preloaded": "numpy" in sys.modules,
    }
    print(json.dumps(facts))
    print("to stderr", file=sys.stderr)
    return 0


def end(arguments: list[str]) -> object:
    how = arguments[0]
    if how == "clock":
        print(time.monotonic())
    if how == "raise":
        raise ValueError("the task's own error")
    if how == "exit":
        sys.exit(int(arguments[1]))
    if how == "exit-text":
        sys.exit("ends with words")
    if how == "atexit":
        atexit.register(print, "atexit ran")
        return None
    if how == "thread":
        threading.Thread(target=lambda: (time.sleep(0.05), print("thread ended"))).start()
        return 5
    if how == "wait":
        subprocess.Popen(["sleep", "1000"])
        print("waiting", flush=True)
        time.sleep(1000)
    if how == "fill":
        held = bytearray(int(arguments[1]) << 20)
        for position in range(0, len(held), 4096):
            held[position] = 1
        time.sleep(1000)
    return 0
