"""Four small classifiers of transformers, and inputs for them."""

from typing import Any

import torch
from torch import Tensor, nn

K = 5


def resnet() -> nn.Module:
    from transformers import ResNetConfig, ResNetForImageClassification

    config = ResNetConfig(  # type: ignore[call-arg]
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic", num_labels=K
    )
    return ResNetForImageClassification(config)


def bert() -> nn.Module:
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(  # type: ignore[call-arg]
        vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=16, num_labels=K,
    )  # fmt: skip
    return BertForSequenceClassification(config)


def vit() -> nn.Module:
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(  # type: ignore[call-arg]
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
        image_size=16, patch_size=8, num_labels=K,
    )  # fmt: skip
    return ViTForImageClassification(config)


def roberta() -> nn.Module:
    from transformers import RobertaConfig, RobertaForSequenceClassification

    config = RobertaConfig(  # type: ignore[call-arg]
        vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=20, num_labels=K,
    )  # fmt: skip
    return RobertaForSequenceClassification(config)


IMAGES = {"pixel_values": torch.randn(6, 3, 16, 16, generator=torch.Generator().manual_seed(0))}
TOKENS = {"input_ids": torch.randint(3, 50, (6, 9), generator=torch.Generator().manual_seed(0))}
TRANSFORMERS: dict[str, tuple[Any, dict[str, Tensor], str]] = {
    "resnet": (resnet, IMAGES, "classifier.1"),
    "bert": (bert, TOKENS, "classifier"),
    "vit": (vit, IMAGES, "classifier"),
    "roberta": (roberta, TOKENS, "classifier.out_proj"),
}
