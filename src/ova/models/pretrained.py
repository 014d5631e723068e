"""Encoders that the user has on disk, in a folder of transformers: configuration and safetensors."""

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ova.errors import BadInput
from ova.models.backbone import Backbone, Build

TUNED, FROZEN = "folder:", "frozen:"
Config = dict[str, Any]


class Averaged(nn.Module):
    """The last hidden state, averaged over tokens that are not padding, or over places.

    Every encoder has one; a pooler is often missing from the file and would then be random.
    """

    def __init__(self, network: nn.Module, pad: int, frozen: bool) -> None:
        super().__init__()
        self.network, self.pad, self.frozen = network, pad, frozen
        network.requires_grad_(not frozen)

    def train(self, mode: bool = True) -> "Averaged":
        """A frozen encoder neither drops nor counts anything."""
        super().train(mode)
        self.network.train(mode and not self.frozen)
        return self

    def forward(self, x: Tensor) -> Tensor:
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.frozen):
            if x.is_floating_point():
                h: Tensor = self.network(pixel_values=x).last_hidden_state
                return h.flatten(2).mean(2) if h.ndim == 4 else h.mean(1)
            mask = x != self.pad
            h = self.network(input_ids=x, attention_mask=mask).last_hidden_state
            weight = mask.unsqueeze(-1).to(h.dtype)
            return (h * weight).sum(1) / weight.sum(1).clamp(min=1)


def is_folder(name: str) -> bool:
    """Whether a model's name says a folder."""
    return name.startswith((TUNED, FROZEN))


def encoder(name: str) -> Build:
    """The encoder in a folder, with its weights."""
    folder = Path(name.partition(":")[2])
    config = read_config(folder)

    def make(_: tuple[int, ...], __: float) -> Backbone:
        from transformers import AutoModel

        try:
            network = AutoModel.from_pretrained(
                folder, use_safetensors=True, trust_remote_code=False, local_files_only=True
            )
        except (OSError, ValueError, RuntimeError) as error:
            raise BadInput(f"{folder}: not an encoder with safetensors weights ({error})") from None
        return wrapped(network, config, frozen=name.startswith(FROZEN))

    return make


def read_config(folder: Path) -> Config:
    """The configuration of the encoder in a folder."""
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(
            f"{folder} is not the folder of an encoder as transformers writes it: {error}"
        ) from None
    if not isinstance(config, dict) or not isinstance(config.get("model_type"), str):
        raise BadInput(f"{path} does not say its model_type")
    return config


def empty_encoder(config: Config, frozen: bool) -> Backbone:
    """The encoder of a configuration with random weights; nothing but the configuration is read."""
    from transformers import AutoConfig, AutoModel

    try:
        plain = {key: value for key, value in config.items() if key != "auto_map"}
        made = AutoConfig.for_model(**plain)
        network = AutoModel.from_config(made, trust_remote_code=False)
    except (TypeError, ValueError, KeyError) as error:
        raise BadInput(f"no encoder can be made of this configuration: {error}") from None
    return wrapped(network, config, frozen)


def wrapped(network: nn.Module, config: Config, frozen: bool) -> Backbone:
    """The encoder as a backbone that gives averages."""
    made: Any = network.config
    sizes = getattr(made, "hidden_sizes", None)
    features = sizes[-1] if sizes else made.hidden_size
    pad = config.get("pad_token_id")
    return Backbone(Averaged(network.float(), 0 if pad is None else int(pad), frozen), features)
