"""The example of the documents makes of an image what the network takes, whatever its size."""

import json
import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import cv2
import numpy as np
import pytest

import made_data
from narrowing import there
from ova.modelfolder.answer import answers
from ova.modelfolder.export import export
from ova.modelfolder.folder import load
from ova.modelfolder.train import train
from ova.posthoc.threshold import Promise
from ova.training.engine import Machine, launch
from ova.userdata.gather import gather
from ova.userdata.images import Pixels, read
from ova.userdata.request import Request

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "own-data.md"
SIZES = [
    (40, 40),
    (16, 16),
    (9, 9),
    (31, 57),
    (200, 33),
    (16, 90),
]  # of images; the network takes 16


def example() -> str:
    """The code of the document."""
    found = re.search(r"```py\n(import cv2.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)
    return there(found)[1]


def photo(path: Path, shape: tuple[int, int], seed: int = 0) -> None:
    noise = np.random.default_rng(seed).integers(0, 256, (*shape, 3), dtype=np.uint8)
    cv2.imwrite(str(path), noise)


def run(at: Path) -> dict[str, Any]:
    """Run the example in a folder, and give its names."""
    names: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(at)
        exec(compile(example(), "own-data.md", "exec"), names)
    return names


@pytest.mark.parametrize("shape", SIZES)
def test_the_example_resizes_as_training_does(
    shape: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = {"ova.preparation": json.dumps(Pixels(16).to_json()), "ova.classes": '["a", "b"]'}

    class Session:
        def __init__(self, _: str) -> None: ...

        def get_modelmeta(self) -> SimpleNamespace:
            return SimpleNamespace(custom_metadata_map=facts)

        def run(self, _: None, inputs: dict[str, Any]) -> tuple[Any, ...]:
            return inputs["input"], np.array([1]), np.array([0.5]), np.array([0.5])

    stub = ModuleType("onnxruntime")
    stub.InferenceSession = Session  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "onnxruntime", stub)
    photo(tmp_path / "photo.png", shape)
    names = run(tmp_path)
    assert names["name"] == "b"
    ours = read(str(tmp_path / "photo.png"), 16)
    assert not isinstance(ours, str)
    np.testing.assert_array_equal(names["x"][0], ours)


@pytest.mark.slow
def test_the_example_answers_as_predict_does(tmp_path: Path) -> None:
    wish = Request(
        data=made_data.pictures(tmp_path / "colours"),
        size=16,
        settings=("epochs=2", "model=quick"),
    )
    machine = Machine(accelerator="cpu")
    list(train(launch(machine), gather(wish), tmp_path / "model", machine, Promise(coverage=0.5)))
    model = load(tmp_path / "model")
    assert model.preparation.shape == (3, 16, 16)
    export(model, tmp_path / "model.onnx")
    for seed, shape in enumerate(SIZES):
        photo(tmp_path / "photo.png", shape, seed)
        names = run(tmp_path)
        said = next(iter(answers(model, [str(tmp_path / "photo.png")])))
        assert names["confidence"][0] == pytest.approx(there(said.confidence), abs=1e-5)
        assert names["score"][0] == pytest.approx(there(said.score), rel=1e-4, abs=1e-4)
        near = abs(there(said.score) - model.threshold.value) < 1e-3
        assert near or names["name"] == said.label
        assert "INTER_AREA" in names["facts"]["ova.input"]
