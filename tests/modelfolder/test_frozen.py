"""A model on a frozen encoder: its inputs are looked at once, and the folder is whole without the cache."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from typer.testing import CliRunner

import made_data
import ova
from made_encoders import ENCODERS
from ova.cli.app import app
from ova.errors import BadInput
from ova.files import read_lines
from ova.modelfolder import frozen
from ova.modelfolder.answer import answers
from ova.modelfolder.folder import load
from ova.modelfolder.train import Trained, train
from ova.models.pretrained import Averaged
from ova.posthoc.threshold import Promise
from ova.predictions import read
from ova.training.engine import Machine, launch
from ova.training.progress import carry_out
from ova.userdata.gather import gather
from ova.userdata.request import Request


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OVA_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("OVA_FEATURES", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the batches that an encoder was given."""
    seen: list[int] = []
    plain = Averaged.forward

    def forward(self: Averaged, x: torch.Tensor) -> torch.Tensor:
        seen.append(len(x))
        return plain(self, x)

    monkeypatch.setattr(Averaged, "forward", forward)
    return seen


def wish(at: Path, **more: object) -> Request:
    if not (at / "bert").exists():
        torch.manual_seed(0)
        ENCODERS["bert"](at / "bert")
        made_data.sentences(at / "topics.csv")
    given = {"data": at / "topics.csv", "text": "sentence", "label": "topic", **more}
    return Request(encoder=at / "bert", frozen=True, **given)  # type: ignore[arg-type]


def done(request: Request, out: Path, wanted: Promise | None = None) -> Trained:
    machine = Machine(accelerator="cpu")
    asked = wanted or Promise(coverage=0.5)
    return carry_out(train(launch(machine), gather(request), out, machine, asked), lambda _: None)


def test_every_input_is_embedded_once_and_a_second_training_embeds_nothing(
    rows: list[int], tmp_path: Path
) -> None:
    done(wish(tmp_path), tmp_path / "one")
    different = len(
        {line.lower() for line in (tmp_path / "topics.csv").read_text().splitlines()[1:]}
    )
    assert 0 < sum(rows) <= different
    rows.clear()
    done(wish(tmp_path, formulation="softmax"), tmp_path / "two")
    done(wish(tmp_path), tmp_path / "one", Promise(accuracy=0.6))
    assert not rows


def test_the_folder_answers_as_the_run_did_and_needs_no_cache(tmp_path: Path) -> None:
    request = wish(tmp_path)
    done(request, tmp_path / "m")
    model, run = load(tmp_path / "m"), read(tmp_path / "m/run/predictions/test.parquet")
    said = {round(a.confidence or 0, 4) for a in answers(model, [str(request.data)])}
    assert {round(float(c), 4) for c in run.confidence} <= said
    f, _ = model.outputs(gather(request).task.train.x)  # type: ignore[attr-defined]
    np.testing.assert_allclose(f.mean(0), 0, atol=1e-3)
    np.testing.assert_allclose(f.std(0, correction=0), 1, atol=1e-3)


def test_a_training_that_was_cut_before_the_parts_were_joined_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done(wish(tmp_path), tmp_path / "whole")
    with monkeypatch.context() as patch:
        patch.setattr("ova.modelfolder.train.join", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            done(wish(tmp_path), tmp_path / "cut")
    done(wish(tmp_path), tmp_path / "cut")
    whole, cut = (load_file(tmp_path / name / "weights.safetensors") for name in ("whole", "cut"))
    assert whole.keys() == cut.keys()
    assert all(torch.equal(w, cut[name]) for name, w in whole.items())


def test_what_changes_from_step_to_step_is_trained_in_steps(tmp_path: Path) -> None:
    recipe = gather(wish(tmp_path)).recipe
    assert (recipe.optimiser, recipe.weight_decay) == ("lbfgs", 0)
    for settings in (("optimiser=adamw",), ("members=2",)):
        assert gather(wish(tmp_path, settings=settings)).recipe.optimiser == "adamw"
    with pytest.raises(BadInput, match="would all be the same"):
        gather(wish(tmp_path, settings=("members=2", "optimiser=lbfgs")))
    with pytest.raises(BadInput, match="lbfgs fits a last layer to features that stay"):
        done(Request(**{**vars(wish(tmp_path)), "encoder": None, "frozen": False,
                        "settings": ("optimiser=lbfgs",)}), tmp_path / "m")  # fmt: skip


def test_the_log_says_which_strength_was_chosen(tmp_path: Path) -> None:
    done(wish(tmp_path), tmp_path / "m")
    *tried, last = read_lines(tmp_path / "m/run/log.jsonl")
    assert last["weight_decay"] in {row["weight_decay"] for row in tried}
    assert (tmp_path / "m/run" / frozen.HEAD).exists()


def test_by_name_from_python_and_the_command_line(tmp_path: Path) -> None:
    wish(tmp_path)
    data: dict[str, Any] = {"text": "sentence", "label": "topic", "frozen": True}
    with pytest.raises(BadInput, match="did you mean 'minilm'"):
        ova.train(tmp_path / "topics.csv", encoder="minlm", **data)
    model = ova.train(tmp_path / "topics.csv", encoder=str(tmp_path / "bert"), **data)
    assert len(model.predict(["tell me about rain"])) == 1
    said = CliRunner().invoke(app, ["data", "encoder"])
    assert said.exit_code == 0
    for name in ("minilm", "mpnet", "dinov2"):
        assert name in said.output
    for wrong in (["nonsense"], ["encoder", "--from", str(tmp_path)]):
        assert isinstance(CliRunner().invoke(app, ["data", *wrong]).exception, BadInput)
