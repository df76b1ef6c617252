"""What the configuration says about RPC, as the arguments of servers and clients."""

from typing import TypedDict

from yaqd.config import Configuration
from yaqd.ipc.limits import ClientLimits, ServerLimits
from yaqd.ipc.retry import RetryPolicy

_FIRST_DELAY_S_MAX = 0.1


class ClientOptions(TypedDict):
    """Keyword arguments that RpcClient and BlockingRpcClient share."""

    timeout_s: float
    connect_retries: RetryPolicy
    limits: ClientLimits


def server_limits(conf: Configuration) -> ServerLimits:
    """Raises ConfigError."""
    return ServerLimits(
        connections_max=conf.get_int("yaq.ipc.server.connections-max", minimum=1),
        outstanding_calls_max=conf.get_int("yaq.ipc.server.outstanding-calls-max", minimum=1),
        frame_bytes_max=conf.get_int("ipc.maximum.data.length", minimum=1024, maximum=(1 << 31) - 1),
        buffered_bytes_max=conf.get_size_bytes("yaq.ipc.server.buffered-bytes-max", minimum=1 << 20),
        handshake_timeout_s=conf.get_duration_ms("yaq.ipc.server.handshake-timeout-ms", minimum=1) / 1000,
        progress_timeout_s=conf.get_duration_ms("yaq.ipc.server.progress-timeout-ms", minimum=1) / 1000,
        idle_timeout_s=conf.get_duration_ms("yaq.ipc.server.idle-timeout-ms", minimum=1) / 1000,
    )


def client_options(conf: Configuration) -> ClientOptions:
    """Raises ConfigError. Pauses between attempts to connect grow up to Hadoop's fixed interval."""
    interval_s = conf.get_duration_ms("ipc.client.connect.retry.interval", minimum=0) / 1000
    return ClientOptions(
        timeout_s=conf.get_duration_ms("ipc.client.rpc-timeout.ms", minimum=1) / 1000,
        connect_retries=RetryPolicy(
            attempts=1 + conf.get_int("ipc.client.connect.max.retries", minimum=0),
            first_delay_s=min(_FIRST_DELAY_S_MAX, interval_s),
            delay_max_s=interval_s,
        ),
        limits=ClientLimits(
            connect_timeout_s=conf.get_duration_ms("ipc.client.connect.timeout", minimum=1) / 1000,
            ping_interval_s=conf.get_duration_ms("ipc.ping.interval", minimum=1) / 1000,
            idle_timeout_s=conf.get_duration_ms("ipc.client.connection.maxidletime", minimum=1) / 1000,
            response_bytes_max=conf.get_int("ipc.maximum.response.length", minimum=1024, maximum=(1 << 31) - 1),
        ),
    )
