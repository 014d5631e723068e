"""A model on the Hub, which is a folder here: what goes there is the model and a card, what comes back answers the same."""

import json
from fnmatch import fnmatch
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest
from sklearn.datasets import load_iris
from typer.testing import CliRunner

import ova
from ova.cli.app import app
from ova.errors import BadInput
from ova.modelfolder.card import card
from ova.modelfolder.hub import Address, address_of, push

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["a`b", "<script>alert(1)</script>", "[x](http://evil)"])


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    place = tmp_path_factory.mktemp("trained") / "model"
    return ova.train(X, NAMES[Y], accuracy=0.8, epochs=5, seed=0, out=place)


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A folder in the place of the Hub, with its two ways in and its way out."""
    root = tmp_path / "hub"

    class Api:
        def create_repo(self, repo, *, private, exist_ok):
            assert exist_ok
            root.mkdir(exist_ok=True)
            made = root / f"{repo.replace('/', '--')}.json"
            if not made.exists():
                made.write_text(json.dumps({"private": private}))

        def upload_folder(self, *, repo_id, folder_path, commit_message):
            copytree(folder_path, root / repo_id, dirs_exist_ok=True)

    def snapshot(repo, *, revision, allow_patterns):
        if not (root / repo).is_dir():
            raise ConnectionError("no such repository")
        wanted = tmp_path / f"cache-{revision}"
        for path in (root / repo).rglob("*"):
            name = str(path.relative_to(root / repo))
            if path.is_file() and any(fnmatch(name, each) for each in allow_patterns):
                (wanted / name).parent.mkdir(parents=True, exist_ok=True)
                (wanted / name).write_bytes(path.read_bytes())
        return str(wanted)

    monkeypatch.setattr("huggingface_hub.HfApi", Api)
    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
    return root


def test_what_was_pushed_answers_the_same(model, hub):
    assert push(Path(model.folder), "ann/iris") == "hf://ann/iris"
    again = ova.load("hf://ann/iris@main")
    assert again.classes == model.classes
    assert str(again.threshold) == str(model.threshold)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert list(again.predict(X[:20])) == list(model.predict(X[:20]))


def test_only_the_model_its_report_and_a_card_go_there_privately(model, hub):
    (Path(model.folder) / "notes.txt").write_text("secret")
    push(Path(model.folder), "ann/iris")
    there = {
        str(p.relative_to(hub / "ann/iris")) for p in (hub / "ann/iris").rglob("*") if p.is_file()
    }
    facts = json.loads((Path(model.folder) / "model.json").read_text())
    assert there == {"README.md", "model.json", "report.html", *facts["parts"]}
    assert json.loads((hub / "ann--iris.json").read_text()) == {"private": True}


def test_only_files_of_a_model_come_from_there_and_changed_ones_are_refused(model, hub):
    push(Path(model.folder), "ann/iris")
    (hub / "ann/iris" / "evil.pkl").write_bytes(b"cos\nsystem\n")
    found = ova.load("hf://ann/iris")
    assert not list(Path(found.folder).rglob("*.pkl"))
    weights = hub / "ann/iris" / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\0\0")
    with pytest.raises(BadInput, match="was changed after training"):
        ova.load("hf://ann/iris@other")


def test_the_card_says_the_promise_and_no_name_in_it_is_markup(model):
    from markdown_it import MarkdownIt

    text = card(Path(model.folder), "ann/iris")
    assert text.startswith("---\nlibrary_name: ova\n")
    assert "accuracy >= 0.8 with certainty 0.95" in text
    assert "| accuracy | " in text
    html = MarkdownIt("commonmark").enable("table").render(text)
    assert "<script" not in html
    assert "href" not in html


def test_addresses():
    assert address_of("hf://ann/mails") == Address("ann/mails")
    for wrong in (
        "hf://mails",
        "hf://ann/mails/model",
        "hf://../..",
        "hf://ann/ma ils",
        "hf://a/b@",
    ):
        with pytest.raises(BadInput, match="wanted hf://OWNER/NAME"):
            ova.load(wrong)


def test_what_the_hub_refuses_is_a_sentence(model, hub):
    with pytest.raises(BadInput, match="no such repository; is the name right"):
        ova.load("hf://ann/nothing")
    with pytest.raises(BadInput, match="without a revision"):
        push(Path(model.folder), "ann/iris@v2")
    with pytest.raises(BadInput, match="is not a model"):
        push(hub, "ann/iris")
    assert not hub.exists()


def test_the_command(model, hub):
    done = CliRunner().invoke(app, ["push", str(model.folder), "ann/iris", "--public"])
    assert (done.exit_code, done.output) == (0, "pushed: ova.load('hf://ann/iris')\n")
    assert json.loads((hub / "ann--iris.json").read_text()) == {"private": False}
