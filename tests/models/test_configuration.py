"""A stranger's configuration of an encoder says numbers and words about the network, and fetches nothing."""

import json
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoConfig

from made_encoders import ENCODERS
from ova.errors import BadInput
from ova.models.configuration import network_config, read_config
from ova.models.pretrained import empty_encoder, encoder

HOSTILE: dict[str, tuple[dict[str, Any], str]] = {
    "kernel": ({"_attn_implementation": "somebody/kernel"}, "'_attn_implementation', by which"),
    "public": ({"attn_implementation": "somebody/kernel"}, "'attn_implementation', by which"),
    "experts": ({"experts_implementation": "x/y"}, "'experts_implementation', by which"),
    "code": ({"auto_map": {"AutoModel": "x/y--code.Model"}}, "'auto_map', by which"),
    "weights": ({"backbone": "x/y", "use_pretrained_backbone": True}, "'backbone', by which"),
    "quantised": ({"quantization_config": {"quant_method": "x"}}, "'quantization_config', by"),
    "deep": ({"rope_parameters": {"a": {"_kernel": "x/y"}}}, "'rope_parameters.a._kernel', by"),
    "unknown": ({"hidden_sice": 32}, "'hidden_sice', which is no field of"),
    "no kind": ({"model_type": "nobody-has-it"}, "no network of model_type 'nobody-has-it'"),
    "wrong": ({"hidden_size": "large", "hidden_sizes": "large"}, "config"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_what_fetches_or_nobody_knows_is_refused(case: str, tmp_path: Path) -> None:
    ENCODERS["bert"](tmp_path)
    path = tmp_path / "config.json"
    more, message = HOSTILE[case]
    config = json.loads(path.read_text()) | more
    path.write_text(json.dumps(config))
    with pytest.raises(BadInput, match=message):
        encoder(f"folder:{tmp_path}")((), 0.0)
    with pytest.raises(BadInput, match=message if case != "wrong" else "model.json"):
        empty_encoder(config, False, "model.json")


@pytest.mark.parametrize("name", ENCODERS)
def test_what_transformers_writes_is_taken_as_it_would_take_it(name: str, tmp_path: Path) -> None:
    ENCODERS[name](tmp_path)
    ours = network_config(read_config(tmp_path), tmp_path).to_diff_dict()
    theirs = AutoConfig.from_pretrained(tmp_path).to_diff_dict()
    aside = {"architectures", "_name_or_path", "dtype", "transformers_version"}
    assert {k: v for k, v in ours.items() if k not in aside} == {
        k: v for k, v in theirs.items() if k not in aside
    }


def test_an_older_file_of_bert_is_taken(tmp_path: Path) -> None:
    ENCODERS["bert"](tmp_path)
    path = tmp_path / "config.json"
    old = {"gradient_checkpointing": False, "position_embedding_type": "absolute"}
    path.write_text(json.dumps(json.loads(path.read_text()) | old))
    assert encoder(f"folder:{tmp_path}")((), 0.0).features == 32
    path.write_text(json.dumps(json.loads(path.read_text()) | {"position_embedding_type": "x"}))
    with pytest.raises(BadInput, match="position_embedding_type"):
        encoder(f"folder:{tmp_path}")((), 0.0)


@pytest.mark.parametrize("damage", [b"", b"[" * 100_000, b'{"model_type": NaN}', b"\xff", b"[]"])
def test_a_damaged_configuration_is_named(damage: bytes, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes(damage)
    with pytest.raises(BadInput, match=r"config\.json"):
        read_config(tmp_path)


def test_damaged_weights_are_named(tmp_path: Path) -> None:
    ENCODERS["bert"](tmp_path)
    path = tmp_path / "model.safetensors"
    whole = path.read_bytes()
    for kept in (0, 5, 100, len(whole) - 1):
        path.write_bytes(whole[:kept])
        with pytest.raises(BadInput, match="not an encoder with safetensors weights"):
            encoder(f"folder:{tmp_path}")((), 0.0)
