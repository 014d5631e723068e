"""Listen and serve, until a signal: then what was taken is finished, and the log is on the disk."""

import math
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Any

import uvicorn
from fastapi import FastAPI

from ova.errors import BadInput

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
SIGNALS = (signal.SIGINT, signal.SIGTERM)
BACKLOG = 2048  # connections that wait to be accepted
SPARE = 5  # seconds beyond those that a request may take, before a stop cuts it off


class Server(uvicorn.Server):
    """A server that ends with its work done: a signal to stop is no failure, and is not raised again."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        before = {which: signal.signal(which, self.handle_exit) for which in SIGNALS}
        try:
            yield
        finally:
            for which, handler in before.items():
                signal.signal(which, handler)


def is_local(host: str) -> bool:
    """Whether only this machine can reach a server that listens there.

    >>> is_local("localhost"), is_local("127.0.0.2"), is_local("0.0.0.0")
    (True, True, False)
    """
    try:
        return host in LOOPBACK or ip_address(host).is_loopback
    except ValueError:
        return False


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; the port 0 is any that is free."""
    try:
        family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        # Made by hand, because asyncio sends small replies at once (TCP_NODELAY) only where the
        # socket says that it is one of TCP; without that each reply waits 40 ms.
        listening = socket.socket(family, kind, proto or socket.IPPROTO_TCP)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(BACKLOG)
        except BaseException:
            listening.close()
            raise
    except (OSError, OverflowError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise BadInput(f"cannot listen on {host}, port {port}: {why}; name another") from None
    return listening


def serve(
    app: FastAPI, listening: socket.socket, seconds: float, ready: Callable[[str], Any]
) -> None:
    """Answer until SIGTERM or Ctrl-C; `ready` is called with the address."""
    host, port = listening.getsockname()[:2]
    ready(f"http://{f'[{host}]' if ':' in host else host}:{port}")
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        ws="none",
        lifespan="on",
        timeout_graceful_shutdown=math.ceil(2 * seconds) + SPARE,
    )
    Server(config).run(sockets=[listening])
