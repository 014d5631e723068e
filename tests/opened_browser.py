"""The Chromium of the browser tests, or a word that there is none."""

import os
from collections.abc import Iterator
from typing import Any

import pytest

import find_chromium

QUIET = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """The Chromium that `make test` found or got."""
    found = find_chromium.chromium()
    if found is None and os.environ.get("OVA_REQUIRE_BROWSER") == "1":
        pytest.fail(
            "OVA_REQUIRE_BROWSER=1, but there is no Chromium; python tests/find_chromium.py"
        )
    if found is None:
        pytest.skip("there is no Chromium on this machine; python tests/find_chromium.py gets one")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=QUIET)
        yield browser
        browser.close()
