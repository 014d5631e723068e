"""BERT-Mini (Turc et al., 2019) from scratch: four layers, 256 wide, four heads."""

from torch import Tensor, nn

from ova.errors import BadInput
from ova.models.backbone import Backbone

WIDTH = 256
POSITIONS = 512  # as published, so that the parameters count 11.2 M; a shorter input uses fewer


class Text(nn.Module):
    """The pooled output of BERT for rows of token ids, where 0 is padding."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        f: Tensor = self.network(input_ids=x, attention_mask=x != 0).pooler_output
        return f


def bert_mini(shape: tuple[int, ...], dropout: float = 0.0) -> Backbone:
    """BERT-Mini for (vocabulary, length); its feature is BERT's pooled [CLS]."""
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
    return Backbone(Text(BertModel(config)), WIDTH)
