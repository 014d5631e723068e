"""Encoders that the user has on disk, in a folder of transformers: configuration and safetensors."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ova.files import reading
from ova.models.backbone import Backbone, Build
from ova.models.configuration import Config, network_config, read_config

TUNED, FROZEN = "folder:", "frozen:"


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


class Standardised(Backbone):
    """Features that stay as they are, each with mean 0 and deviation 1 on the first rows it is given.

    So one strength of regularisation fits all of them, whatever the encoder. Features that were taken
    from the encoder before are given as they are: then the body does nothing.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, body: nn.Module, features: int) -> None:
        super().__init__(body, features)
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("deviation", torch.ones(features))

    @torch.no_grad()
    def start(self, x: Tensor) -> None:
        """Measure mean and deviation of every feature; one that never varies is left in its unit."""
        f = self.body(x)
        self.mean.copy_(f.mean(0))
        deviation = f.std(0, correction=0)
        still = deviation <= 1e-6 * deviation.max()
        self.deviation.copy_(torch.where(still, 1.0, deviation))

    def forward(self, x: Tensor) -> Tensor:
        f: Tensor = self.body(x)
        return (f - self.mean) / self.deviation


def is_folder(name: str) -> bool:
    """Whether a model's name says a folder."""
    return name.startswith((TUNED, FROZEN))


def encoder(name: str) -> Build:
    """The encoder in a folder, with its weights; for inputs that are its features, what comes after it."""
    folder, frozen = Path(name.partition(":")[2]), name.startswith(FROZEN)
    config = read_config(folder)

    def make(shape: tuple[int, ...], _: float) -> Backbone:
        from transformers import AutoModel

        if frozen and len(shape) == 1:
            return Standardised(nn.Identity(), shape[0])

        made = network_config(config, folder)
        with reading(folder, "an encoder with safetensors weights"):
            network = AutoModel.from_pretrained(
                folder,
                config=made,
                use_safetensors=True,
                trust_remote_code=False,
                local_files_only=True,
            )
            return wrapped(network, config, frozen, frozen)

    return make


def empty_encoder(config: Config, frozen: bool, source: object, standard: bool = False) -> Backbone:
    """The encoder of a configuration with random weights; nothing but the configuration is read.

    `standard` says whether its features are standardised, as those of frozen encoders are; earlier
    versions left them as they came.
    """
    from transformers import AutoModel

    made = network_config(config, source)
    with reading(str(source), "the configuration of an encoder"):
        network = AutoModel.from_config(made, trust_remote_code=False)
        return wrapped(network, config, frozen, standard)


def wrapped(network: nn.Module, config: Config, frozen: bool, standard: bool) -> Backbone:
    """The encoder as a backbone that gives averages."""
    made: Any = network.config
    sizes = getattr(made, "hidden_sizes", None)
    features = sizes[-1] if sizes else made.hidden_size
    pad = config.get("pad_token_id")
    body = Averaged(network.float(), 0 if pad is None else int(pad), frozen)
    return (Standardised if standard else Backbone)(body, features)
