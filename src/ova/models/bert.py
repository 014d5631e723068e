"""BERT-Mini (Turc et al., 2019) from scratch: four layers, 256 wide, four heads."""

from collections.abc import Iterable
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from ova.errors import BadInput
from ova.models.backbone import Backbone

WIDTH = 256
POSITIONS = 512  # as published, so that the parameters count 11.2 M; a shorter input uses fewer


class Text(nn.Module):
    """The pooled output of BERT for rows of token ids, where 0 is padding.

    Only [CLS] is pooled, so the last layer asks and transforms for [CLS] alone: the same numbers
    as the whole network gives, with a fifth less work.
    """

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        mask = (x != 0)[:, None, None, :]
        *layers, last = self.network.encoder.layer
        h = through(layers, self.network.embeddings(input_ids=x), mask)
        f: Tensor = self.network.pooler(first_token(last, h, mask))
        return f


class MeanText(nn.Module):
    """The mean over the word pieces of what BERT's last layer says of each; 0 is padding.

    From scratch [CLS] must first learn where to look; a mean sees every word from the first step.
    """

    def __init__(self, network: Any) -> None:
        super().__init__()
        network.pooler = None
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        seen = x != 0
        h = self.network.embeddings(input_ids=x)
        h = through(self.network.encoder.layer, h, seen[:, None, None, :])
        weight = seen[:, :, None].to(h.dtype)
        return (h * weight).sum(1) / weight.sum(1)


def through(layers: Iterable[Any], h: Tensor, mask: Tensor) -> Tensor:
    """What the layers make of all tokens."""
    for layer in layers:
        out = layer(h, mask)
        h = out if isinstance(out, Tensor) else out[0]  # a tuple before transformers 5
    return h


def first_token(layer: Any, h: Tensor, mask: Tensor) -> Tensor:
    """What a layer of BERT makes of the first token (B x 1 x D) of h (B x L x D)."""
    attention = layer.attention.self
    q, k, v = (
        project(part).unflatten(-1, (attention.num_attention_heads, -1)).transpose(1, 2)
        for project, part in (
            (attention.query, h[:, :1]),
            (attention.key, h),
            (attention.value, h),
        )
    )
    p = attention.dropout.p if layer.training else 0.0
    context = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=p)
    seen = layer.attention.output(context.transpose(1, 2).flatten(2), h[:, :1])
    out: Tensor = layer.feed_forward_chunk(seen)
    return out


def bert_mini(shape: tuple[int, ...], dropout: float = 0.0) -> Backbone:
    """BERT-Mini for (vocabulary, length); its feature is BERT's pooled [CLS]."""
    return Backbone(Text(network(shape, dropout)), WIDTH)


def bert_mini_mean(shape: tuple[int, ...], dropout: float = 0.0) -> Backbone:
    """The same network; its feature is the mean over the word pieces."""
    return Backbone(MeanText(network(shape, dropout)), WIDTH)


def network(shape: tuple[int, ...], dropout: float) -> Any:
    """BERT-Mini of transformers for (vocabulary, length)."""
    if len(shape) != 2:
        raise BadInput(f"bert-mini takes tokens, shape (vocabulary, length), not {shape}")
    from transformers import BertConfig, BertModel

    vocabulary, length = shape
    config = BertConfig(
        vocab_size=vocabulary,
        hidden_size=WIDTH,
        num_hidden_layers=4,
        num_attention_heads=4,
        intermediate_size=4 * WIDTH,
        max_position_embeddings=max(POSITIONS, length),
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
        pad_token_id=0,
    )
    return BertModel(config)


MODELS = {"bert-mini": bert_mini, "bert-mini-mean": bert_mini_mean}
