"""What all tests share: where the real data is, and one thread for repeatable numbers."""

import os
from pathlib import Path

import pytest
import torch

torch.set_num_threads(1)
torch.set_flush_denormal(True)

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of the real data: OVA_DATA, or `shared/data` beside the project."""
    folder = Path(os.environ.get("OVA_DATA", BESIDE))
    if (folder / "cifar10").is_dir():
        return folder
    if os.environ.get("OVA_REQUIRE_DATA") == "1":
        pytest.fail(f"OVA_REQUIRE_DATA=1, but there is no real data in {folder}")
    pytest.skip(f"the real data is not on this machine (looked in {folder}; set OVA_DATA)")
