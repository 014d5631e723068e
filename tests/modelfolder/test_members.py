"""A model of several networks: their mean p answers, in `ova predict` and in ONNX."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from typer.testing import CliRunner

import made_data
from narrowing import there
from ova.cli.app import app
from ova.errors import BadInput
from ova.modelfolder.answer import answers, as_outputs
from ova.modelfolder.export import export
from ova.modelfolder.folder import load
from ova.modelfolder.train import train
from ova.nn.formulations import FORMULATIONS
from ova.nn.heads import Affine
from ova.posthoc.threshold import Promise
from ova.predictions import NONE_LABEL, read
from ova.training import checkpoint
from ova.training.classifier import build
from ova.training.engine import Machine, launch
from ova.training.together import MeanOfP, answering, members_of
from ova.userdata.gather import gather
from ova.userdata.request import Request
from ova.userdata.rows import whole

SETTINGS = ("epochs=3", "batch_size=16", "members=3")


def gathered(at, formulation):
    data = at / "table.csv"
    made_data.table(data)
    return gather(Request(data=data, formulation=formulation, settings=SETTINGS))


def fit(wish, out, stop=None, score=""):
    machine = Machine(accelerator="cpu")
    events = train(launch(machine), wish, out, machine, Promise(coverage=0.8), score)
    for number, _ in enumerate(events):
        if number == stop:
            break
    events.close()


@pytest.fixture(scope="module", params=["softmax", "ova-ball"])
def trained(request, tmp_path_factory):
    at = tmp_path_factory.mktemp(request.param)
    wish = gathered(at, request.param)
    fit(wish, at / "model")
    return wish, at / "model"


def members(wish, out):
    """The members one by one, with the weights that the folder holds for them."""
    tensors = checkpoint.load(out / "weights.safetensors")[0]
    nets = []
    for k, recipe in enumerate(members_of(wish.recipe)):
        net = build(recipe, wish.task).eval()
        body, head = f"backbone.body.members.{k}.", f"head.members.{k}."
        mine = {f"backbone.{n[len(body) :]}": t for n, t in tensors.items() if n.startswith(body)}
        mine |= {f"head.{n[len(head) :]}": t for n, t in tensors.items() if n.startswith(head)}
        net.load_state_dict(mine)
        nets.append(net)
    return nets


@pytest.mark.slow
def test_it_answers_with_the_mean_of_its_members(trained):
    wish, out = trained
    model, form = load(out), FORMULATIONS[wish.recipe.formulation]
    x = model.preparation.example(40, torch.Generator().manual_seed(0))
    with torch.no_grad():
        z = [net(model.preparation.prepare(x)) for net in members(wish, out)]
    parts = [form.probs(each.double()) for each in z]
    assert not torch.allclose(parts[0], parts[1], atol=1e-3)
    mean = torch.stack(parts).mean(0).numpy()
    said = as_outputs(model, *model.outputs(x))
    assert np.allclose(np.exp(said.log_p), mean, atol=1e-6)
    assert np.allclose(mean.sum(1), 1) == form.normalised
    if form.normalised:
        energy = torch.stack([each.logsumexp(1) for each in z]).mean(0)
        assert np.allclose(there(there(said.said).energy), energy, rtol=1e-4)


@pytest.mark.parametrize("name", FORMULATIONS)
def test_no_digits_are_lost_near_zero_and_one(name):
    form = FORMULATIONS[name]
    heads = [Affine(3, 3) for _ in range(2)]
    for head, scale in zip(heads, (-60.0, -50.0), strict=True):
        torch.nn.init.zeros_(head.bias)
        head.weight.data = scale * torch.eye(3)
    f = torch.tensor([[1.0, 0, 0.5, 1.0, 0, 0.5], [0.1, 0.2, 0.01, 0.1, 0.2, 0.01]])
    z = MeanOfP(heads, form)(f)
    assert z.isfinite().all()
    parts = [form.log_probs(h(f[:, :3]).double()).exp() for h in heads]
    mean = torch.stack(parts).mean(0)
    log_p = answering(name, 2).log_probs(z)
    seen = mean > 1e-30
    assert torch.allclose(log_p[seen].double(), mean[seen].log(), rtol=1e-5, atol=1e-6)


def test_predict_says_what_the_run_measured(trained):
    wish, out = trained
    model = load(out)
    run, test = read(out / "run/predictions/test.parquet"), wish.task.evaluations["test"]()
    frame = (
        whole(wish.request.data) if hasattr(wish, "request") else whole(out.parent / "table.csv")
    )
    said = list(answers(model, [str(out.parent / "table.csv")]))
    place = {r.tobytes(): i for i, r in enumerate(model.preparation.encode(frame).x.numpy())}
    plain = replace(model, calibration="as trained")
    raw = list(answers(plain, [str(out.parent / "table.csv")]))
    for i, x in enumerate(test.x):
        row = place[x.numpy().tobytes()]
        assert raw[row].confidence == pytest.approx(float(run.confidence[i]), abs=1e-5)
        assert said[row].label in (model.classes[run.prediction[i]], NONE_LABEL)
    assert {a.label for a in said} > {NONE_LABEL}


@pytest.mark.parametrize(
    "trained", [pytest.param("softmax", marks=pytest.mark.slow), "ova-ball"], indirect=True
)
def test_the_onnx_file_decides_as_predict_does(trained, tmp_path):
    _, out = trained
    model = load(out)
    export(model, tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"))
    frame = whole(out.parent / "table.csv")
    x = model.preparation.encode(frame).x
    p, label, confidence, _ = session.run(None, {"input": x.numpy()})
    said = list(answers(model, [str(out.parent / "table.csv")]))
    assert np.allclose(confidence, [there(a.confidence) for a in said], atol=1e-4)
    assert np.allclose(p.sum(1), 1, atol=1e-4) == model.form.normalised
    told = [NONE_LABEL if k < 0 else model.classes[k] for k in label]
    assert np.mean([a.label == t for a, t in zip(said, told, strict=True)]) > 0.99


@pytest.mark.slow
def test_an_interrupted_training_ends_with_the_same_weights(trained, tmp_path):
    wish, out = trained
    again = tmp_path / "model"
    for stop in (3, 8):
        fit(wish, again, stop)
        assert not (again / "model.json").exists()
    fit(wish, again)
    assert (again / "weights.safetensors").read_bytes() == (
        out / "weights.safetensors"
    ).read_bytes()
    assert not list((again / "run").rglob("*.safetensors"))  # on the disk once


def test_passes_with_dropout_on_make_no_promise(trained, tmp_path):
    wish, _ = trained
    asked = replace(wish, recipe=replace(wish.recipe, members=1, dropout=0.2, samples=5))
    with pytest.raises(BadInput, match="--members 5"):
        fit(asked, tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_the_folder_says_how_many(trained):
    wish, out = trained
    assert json.loads((out / "model.json").read_text())["members"] == 3
    assert len({each.seed for each in members_of(wish.recipe)}) == 3


def test_the_command_trains_them(tmp_path: Path):
    made_data.table(tmp_path / "t.csv")
    line = ["train", str(tmp_path / "t.csv"), "-o", str(tmp_path / "m"), "--members", "2"]
    done = CliRunner().invoke(app, [*line, "--set", "epochs=2", "--score", "max_p"])
    assert done.exit_code == 0, done.output
    assert json.loads((tmp_path / "m" / "model.json").read_text())["members"] == 2
