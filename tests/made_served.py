"""Models of every kind to be served, and a client of a server within this process."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient

import made_data
from ova.modelfolder.folder import Model
from ova.modelfolder.server.app import create
from ova.modelfolder.train import train
from ova.posthoc.threshold import Promise
from ova.training.engine import Machine, launch
from ova.userdata.gather import gather
from ova.userdata.request import Request

OLD = Path(__file__).parent / "modelfolder" / "version_0_1"  # a table of two numbers and a word
QUICK = ("epochs=2", "batch_size=16")


def texts(at: Path) -> Path:
    """A model of texts that looks for the nearest training rows."""
    data = made_data.sentences(at / "topics.csv", per_class=24)
    wish = Request(data=data, text="sentence", label="topic", settings=QUICK)
    return trained(wish, at / "model", "nearest")


def images(at: Path) -> Path:
    """A model of images."""
    wish = Request(data=made_data.pictures(at / "colours", per_class=14), settings=QUICK)
    return trained(wish, at / "model", "max_p")


def trained(wish: Request, out: Path, score: str) -> Path:
    """A model folder, quickly."""
    machine = Machine(accelerator="cpu")
    for _ in train(launch(machine), gather(wish), out, machine, Promise(coverage=0.5), score):
        pass
    return out


@contextmanager
def asking(model: Model, *args: Any, **options: Any) -> Iterator[TestClient]:
    """A client of a server that lives as long."""
    with TestClient(create(model, *args, **options), base_url="http://127.0.0.1") as client:
        yield client
