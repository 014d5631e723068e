"""The models that are served: each is made once for all tests."""

from pathlib import Path

import pytest

import made_served
from ova.modelfolder.folder import Model, load

KINDS = ("table", "text", "image")


@pytest.fixture(scope="session")
def table() -> Model:
    return load(made_served.OLD / "model")


@pytest.fixture(scope="session")
def text(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return load(made_served.texts(tmp_path_factory.mktemp("text")))


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return load(made_served.images(tmp_path_factory.mktemp("image")))


@pytest.fixture(scope="session", params=KINDS)
def model(request: pytest.FixtureRequest) -> Model:
    found: Model = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import made_data

    return made_data.pictures(tmp_path_factory.mktemp("pictures") / "new", per_class=3)
