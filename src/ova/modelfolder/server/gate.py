"""The gate that every request passes: who may ask, how much may be sent, and what a browser may do."""

import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from fastapi.datastructures import Headers
from fastapi.responses import JSONResponse

from ova.modelfolder.server.counts import Counts
from ova.modelfolder.server.limits import Limits
from ova.modelfolder.server.refused import Refused

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

ASKING = "/predict"
OPEN = (
    "/",
    "/try.js",
    "/try.css",
    "/try.svg",
    "/health",
    "/ready",
)  # without a token: nothing of the model
# Only what comes from here may run, and nothing may be sent anywhere else.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
ADDED = [(name.encode(), value.encode()) for name, value in HEADERS.items()]


@dataclass(frozen=True)
class Door:
    """Who may ask: with the token, where there is one; under these names, where they are known.

    Pages may ask that come from here, or from a name that a proxy before this server has.
    """

    token: str = ""
    hosts: frozenset[str] = frozenset()
    proxies: frozenset[str] = frozenset()

    def knows(self, host: str) -> bool:
        """Whether the server may be asked by this name."""
        return not self.hosts or name_of(host) in self.hosts | self.proxies

    def trusts(self, origin: str, host: str) -> bool:
        """Whether a page from there may ask."""
        site = origin.partition("://")[2].lower()
        return bool(site) and (site == host.lower() or name_of(site) in self.proxies)


@dataclass
class Gate:
    """An ASGI application around another."""

    app: App
    door: Door
    limits: Limits
    counts: Counts
    _open: int = field(default=0, init=False)  # requests
    _held: int = field(default=0, init=False)  # bytes of their bodies

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, status, held = perf_counter(), 500, 0

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *ADDED]
            await send(message)

        async def received() -> Message:
            nonlocal held
            message = await receive()
            size = len(message.get("body", b""))
            held, self._held = held + size, self._held + size
            self.check_size(held)  # a length need not be said, or be true
            return message

        self._open += 1
        try:
            self.check(scope["path"], Headers(scope=scope))
            await self.app(scope, received, sent)
        except Refused as error:  # before the application said anything
            await refusal(error)(scope, receive, sent)
        finally:
            self._open -= 1
            self._held -= held
            if scope["path"] == ASKING:
                self.counts.requests.labels(str(status)).inc()
                self.counts.seconds.observe(perf_counter() - started)

    def check(self, path: str, headers: Headers) -> None:
        """Refuse who may not ask, and what is too large, before anything is read."""
        if path == ASKING and self._open > self.limits.connections:
            told = f"{self.limits.connections} requests are open already; ask again in a moment"
            raise Refused(503, told, 1)
        host = headers.get("host", "")
        if not self.door.knows(host):
            raise Refused(
                403, f"this server is not called {host!r}; ask it by the name it listens on"
            )
        origin = headers.get("origin")
        if origin is not None and not self.door.trusts(origin, host):
            raise Refused(403, "a page of another site may not ask this server")
        if self.door.token and path not in OPEN:
            kind, _, given = headers.get("authorization", "").partition(" ")
            same = hmac.compare_digest(given.strip().encode(), self.door.token.encode())
            if kind.lower() != "bearer" or not same:
                raise Refused(401, "wanted the header 'Authorization: Bearer TOKEN' with the token")
        length = headers.get("content-length", "0")
        self.check_size(int(length[:20]) if length.isdecimal() else 0)

    def check_size(self, size: int) -> None:
        """Refuse a body that is too large, and all while too much is held."""
        if size > self.limits.body:
            told = f"the body is too large; up to {self.limits.body} bytes are taken"
            raise Refused(413, told)
        if size and self._held > self.limits.held:
            raise Refused(503, "too much arrives at once; ask again in a moment", 1)


def name_of(host: str) -> str:
    """The name in a Host header, without the port.

    >>> name_of("LocalHost:8000"), name_of("[::1]:8000"), name_of("[::1]")
    ('localhost', '::1', '::1')
    """
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def refusal(error: Refused) -> JSONResponse:
    """What is sent in the place of an answer."""
    return JSONResponse({"error": str(error)}, error.status, error.headers)
