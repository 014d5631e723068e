"""The server does what its own description says, for requests that nobody thought of."""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
import torch
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from ova.modelfolder.folder import Model
from ova.modelfolder.server.app import create
from ova.modelfolder.server.limits import Limits

# What is too large is bad as well (413), but the check does not know that. And no schema can say
# which bytes are an image, or which words a number.
CONFIG = {"checks": {"negative_data_rejection": {"expected-statuses": [400, 413, 415, 422]}}}
FITS = {200, 415, 422}  # of what the schema allows
PATHS = {"/health", "/ready", "/metrics", "/model", "/predict"}


@pytest.fixture
def small_numbers() -> Iterator[None]:
    """The smallest floats are made in this test, which are zero in others."""
    torch.set_flush_denormal(False)
    yield
    torch.set_flush_denormal(True)


def statuses(operation: schemathesis.APIOperation, mode: GenerationMode, examples: int) -> set[int]:
    """What an operation answered, each answer being one that is described."""
    seen = set()

    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def holds(case: schemathesis.Case) -> None:
        reply = case.call_and_validate(excluded_checks=[positive_data_acceptance])
        seen.add(reply.status_code)

    holds()
    return seen


@pytest.mark.slow
@pytest.mark.usefixtures("small_numbers")
@pytest.mark.parametrize("mode", list(GenerationMode))
def test_what_the_description_says_holds(mode: GenerationMode, model: Model) -> None:
    """No failure of ours, no status, type or content that is not described, nothing bad that is taken."""
    app = create(model, Limits(rows=5, letters=30))
    with TestClient(app, "http://127.0.0.1"):
        config = schemathesis.Config.from_dict(CONFIG)
        schema = schemathesis.openapi.from_asgi("/openapi.json", app, config=config)
        found: list[Any] = list(schema.get_all_operations())
        operations = {each.ok().path: each.ok() for each in found}
        assert operations.keys() == PATHS
        seen = statuses(operations["/predict"], mode, 60)
        if mode == GenerationMode.NEGATIVE:
            assert 422 in seen  # what was taken all the same, its check found harmless
            return
        assert seen <= FITS
        assert 200 in seen or model.kind == "image"
        for path in PATHS - {"/predict"}:
            assert statuses(operations[path], mode, 2) == {200}
