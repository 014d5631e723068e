"""`ova serve` refuses what cannot be served before it listens, and touches nothing then."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

import made_served
from ova.cli.app import app
from ova.errors import BadInput

MODEL = str(made_served.OLD / "model")
BAD = {
    "--token=caf\u00e9": "no header can carry",
    "--token=two\nlines": "no header can carry",
    "--log-hash": "name one with --log",
    "--false-alarms=0": "is no chance",
    "--log=mine.csv": "is no log of `ova serve`",
    "--log=no/log.jsonl": "No such file",
    "--log=.": "is a folder",
    "--host=no.such.host.invalid": "cannot listen on no.such.host.invalid",
}


@pytest.mark.parametrize("option", BAD)
def test_what_cannot_be_served_is_said(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.csv").write_text("a,b\n1,2")
    done = CliRunner().invoke(app, ["serve", MODEL, "--port=0", option])
    assert isinstance(done.exception, BadInput)
    assert BAD[option] in str(done.exception)
    assert (tmp_path / "mine.csv").read_text() == "a,b\n1,2"
    assert [path.name for path in tmp_path.iterdir()] == ["mine.csv"]


def test_what_is_no_model_is_said(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["serve", str(tmp_path)])
    assert "is not a model" in str(done.exception)
