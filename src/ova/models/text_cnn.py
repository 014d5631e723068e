"""A small convolutional network for texts (Kim, 2014): quick to train from scratch."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ova.errors import BadInput
from ova.models.backbone import Backbone

WIDTH, SPANS = 256, (1, 2, 3)


class Spans(nn.Module):
    """For each filter over spans of word pieces its largest answer in the text; 0 is padding.

    Dropout acts on the embeddings, not on the features: see docs/formulations.md, the ball.
    """

    def __init__(self, vocabulary: int, dropout: float) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, WIDTH, padding_idx=0)
        nn.init.normal_(self.embedding.weight, std=0.1)
        self.convolutions = nn.ModuleList(nn.Conv1d(WIDTH, WIDTH, span) for span in SPANS)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        # Every text ends with a span of padding alone, however long its neighbours in the batch are:
        # what the network says of it must not depend on them.
        x = F.pad(x, (0, max(SPANS)))
        h = self.dropout(self.embedding(x) * (x != 0).unsqueeze(-1)).transpose(1, 2)
        return torch.cat([conv(h).relu().amax(-1) for conv in self.convolutions], -1)


def text_cnn(shape: tuple[int, ...], dropout: float = 0.0) -> Backbone:
    """Filters over 1, 2 and 3 word pieces, 256 of each, for (vocabulary, length)."""
    if len(shape) != 2:
        raise BadInput(f"text-cnn takes tokens, shape (vocabulary, length), not {shape}")
    return Backbone(Spans(shape[0], dropout), WIDTH * len(SPANS))


MODELS = {"text-cnn": text_cnn}
