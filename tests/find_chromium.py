"""Find a Chromium for the browser tests, or get one; say plainly when there is none.

Looks on the PATH, then asks Playwright for its own build, then (as root on Debian) the package
manager. Never fails: the browser tests themselves decide whether a missing browser is an error.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# What a test starts it with: nothing of its own is asked of the network.
QUIET = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
]


def on_path() -> str | None:
    """A Chromium on the PATH."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


def of_playwright() -> str | None:
    """The Chromium that Playwright installed for itself, if it did."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).exists() else None


def chromium() -> str | None:
    """The path of a Chromium that is already on this machine."""
    return on_path() or of_playwright()


def attempt(*command: str) -> bool:
    """Whether a command succeeded; its noise is not the user's."""
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def get() -> str | None:
    """A Chromium, fetched if need be."""
    if found := chromium():
        return found
    print("no Chromium on the PATH; asking Playwright for one ...", flush=True)
    attempt(sys.executable, "-m", "playwright", "install", "--only-shell", "chromium")
    if found := chromium():
        return found
    if shutil.which("apt-get") and os.geteuid() == 0:
        print("Playwright has none; asking Debian's package manager ...", flush=True)
        attempt("apt-get", "update", "-q")
        attempt("apt-get", "install", "-y", "-q", "--no-install-recommends", "chromium")
    return chromium()


if __name__ == "__main__":
    where = get()
    print(
        f"browser tests use {where}"
        if where
        else "no Chromium could be had: the browser tests will not run"
    )
