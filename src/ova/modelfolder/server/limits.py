"""What one request may ask for, and how much may wait."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Whatever is above a limit is refused with a sentence that names it."""

    body: int = 32 << 20  # bytes of a request
    rows: int = 1000  # inputs of a request
    letters: int = 20_000  # characters of a text, or of a cell
    pixels: int = 50_000_000  # of all images of a request together
    seconds: float = 30.0  # for a request to arrive, and again for its answer
    waiting: int = 10_000  # rows that wait for the model
    batch: int = 1024  # rows that the model is given at once
    connections: int = 512  # requests to predict that are open
    held: int = 256 << 20  # bytes of all their bodies
