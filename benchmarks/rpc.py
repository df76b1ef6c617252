"""How many calls a second our RPC carries on one core: server and client are two processes pinned to the same one.

`python -m benchmarks.rpc [--json]`. Row `echo`: 64 calls in flight on one connection, bodies of 200 bytes each way.
"""

import argparse
import asyncio
import multiprocessing
import os
import time
from multiprocessing.connection import Connection

import psutil

from benchmarks.report import make_row, print_table, to_json
from yaqd.ipc import Caller, RpcClient, RpcServer
from yaqd.ipc.loop import run
from yaqd.proto import rpc_pb2 as rpc
from yaqd.proto.protocols import Method

ECHO = Method("org.yaqd.benchmarks.EchoPB", "echo", rpc.UserInformation, rpc.UserInformation)
BODY_BYTES = 200
IN_FLIGHT = 64


def echo(request: rpc.UserInformation, caller: Caller) -> rpc.UserInformation:
    return request


def serve(core: int, ready: Connection) -> None:
    """Run the echo server until the other end of `ready` is closed."""
    os.sched_setaffinity(0, {core})

    async def main() -> None:
        server = RpcServer(name="echo", host="127.0.0.1")
        server.register(ECHO, echo)
        await server.start()
        ready.send(server.port)
        stop = asyncio.Event()
        asyncio.get_running_loop().add_reader(ready.fileno(), stop.set)
        await stop.wait()
        await server.stop()

    run(main())


async def measure(port: int, seconds: float) -> float:
    """Return the calls per second of one run."""
    request = rpc.UserInformation(effectiveUser="x" * (BODY_BYTES - 3))
    assert request.ByteSize() == BODY_BYTES
    client = RpcClient("127.0.0.1", port, user="benchmark")
    calls = 0

    async def caller(until: float) -> None:
        nonlocal calls
        while time.perf_counter() < until:
            await client.call(ECHO, request)
            calls += 1

    await asyncio.gather(*(caller(time.perf_counter() + 0.3) for _ in range(IN_FLIGHT)))  # warm up
    calls, start = 0, time.perf_counter()
    await asyncio.gather(*(caller(start + seconds) for _ in range(IN_FLIGHT)))
    elapsed = time.perf_counter() - start
    await client.close()
    return calls / elapsed


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rpc", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="length of a run")
    options = parser.parse_args()

    core = max(os.sched_getaffinity(0))
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    server = context.Process(target=serve, args=(core, theirs))
    server.start()
    theirs.close()
    port = ours.recv()
    os.sched_setaffinity(0, {core})
    rates = [run(measure(port, options.seconds)) for _ in range(options.runs)]
    memory_mb = psutil.Process(server.pid).memory_full_info().pss / 2**20
    ours.close()
    server.join(10)
    row = make_row("echo", rates, None, "calls/s", higher_is_better=True)
    if options.json:
        print(to_json([row], server_pss_mb=round(memory_mb, 1)))
        return
    print_table([row])
    print(f"server: {memory_mb:.0f} MB (PSS); {IN_FLIGHT} in flight, {BODY_BYTES} bytes, both ends on core {core}")


if __name__ == "__main__":
    main()
