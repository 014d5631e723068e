"""Encoders that the user has on disk: read as data, trained or frozen, kept whole in the model folder."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import (
    AutoModel,
)

import made_data
from made_encoders import ENCODERS
from ova.errors import BadInput
from ova.modelfolder.answer import answers
from ova.modelfolder.export import export
from ova.modelfolder.folder import load
from ova.modelfolder.train import train
from ova.nn.formulations import DEFAULT, DEFAULT_FROZEN
from ova.posthoc.threshold import Promise
from ova.predictions import read
from ova.training.engine import Machine, launch
from ova.userdata.gather import gather
from ova.userdata.request import Request


def wish(name: str, at: Path, **more: object) -> Request:
    ENCODERS[name](at / name)
    more = {"encoder": at / name, "settings": ("epochs=2", "lr=0.01"), **more}
    if name == "bert":
        data = made_data.sentences(at / "topics.csv")
        return Request(data=data, text="sentence", label="topic", **more)  # type: ignore[arg-type]
    return Request(data=made_data.pictures(at / "colours"), **more)  # type: ignore[arg-type]


# Writing an encoder as ONNX takes seconds; `make check` does it with the smallest one.
EXPORTED = [
    pytest.param(n, True, marks=() if n == "resnet" else pytest.mark.slow) for n in ENCODERS
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "frozen"), [*((n, False) for n in ENCODERS), *EXPORTED])
def test_an_encoder_on_disk_round_trips(name: str, frozen: bool, tmp_path: Path) -> None:
    torch.manual_seed(0)
    asked = wish(name, tmp_path, frozen=frozen)
    machine = Machine(accelerator="cpu")
    for _ in train(launch(machine), gather(asked), tmp_path / "m", machine, Promise(coverage=0.5)):
        pass
    before = AutoModel.from_pretrained(tmp_path / name).state_dict()  # transformers renames some
    after = load_file(tmp_path / "m" / "weights.safetensors")
    kept = [torch.equal(w, after[f"backbone.body.network.{n}"]) for n, w in before.items()]
    assert all(kept) == frozen
    for path in (tmp_path / name).iterdir():
        path.unlink()  # the model folder needs nothing else
    model = load(tmp_path / "m")
    assert model.facts["formulation"] == (DEFAULT_FROZEN if frozen else DEFAULT)
    run = read(tmp_path / "m/run/predictions/test.parquet")
    said = {round(a.confidence or 0, 4) for a in answers(model, [str(asked.data)])}
    assert {round(float(c), 4) for c in run.confidence} <= said
    if frozen:
        assert export(model, tmp_path / "m.onnx") <= 1e-5


def test_pickled_weights_and_other_folders_are_refused(tmp_path: Path) -> None:
    asked = wish("bert", tmp_path)
    gathered = gather(asked)
    folder = tmp_path / "bert"
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    machine = Machine(accelerator="cpu")
    with pytest.raises(BadInput, match="safetensors"):
        list(train(launch(machine), gathered, tmp_path / "m", machine, Promise()))
    (folder / "config.json").unlink()
    with pytest.raises(BadInput, match="not the folder of an encoder"):
        gather(asked)
    table = Request(data=made_data.table(tmp_path / "t.csv"), encoder=folder)
    with pytest.raises(BadInput, match="a table has none"):
        gather(table)


@pytest.mark.parametrize("name", ["tokenizer.json", "vocab.txt"])
def test_a_tokenizer_without_a_piece_for_the_unknown_is_named(name: str, tmp_path: Path) -> None:
    """It fails at the first text that has a letter of its own, which may come years later."""
    asked = wish("bert", tmp_path)
    whole = tmp_path / "bert/tokenizer.json"
    content = json.loads(whole.read_text())
    del content["model"]["vocab"]["[UNK]"]
    whole.unlink()
    pieces = "\n".join(content["model"]["vocab"])
    (tmp_path / "bert" / name).write_text(json.dumps(content) if name == whole.name else pieces)
    with pytest.raises(BadInput, match=f"{name}: damaged, or not a"):
        gather(asked)
