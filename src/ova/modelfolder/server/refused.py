"""A request that is refused: the status of HTTP, and one sentence that says what would have worked."""

from ova.errors import BadInput


class Refused(BadInput):
    """What is answered in the place of an answer."""

    def __init__(self, status: int, said: str, after: int | None = None) -> None:
        super().__init__(said)
        self.status = status
        self.headers = {} if after is None else {"Retry-After": str(after)}
        if status == 401:
            self.headers = {"WWW-Authenticate": "Bearer"}
