"""Tiny encoders as folders of transformers, written to disk."""

import json
from pathlib import Path

from transformers import (
    BertConfig,
    BertModel,
    ResNetConfig,
    ResNetModel,
    ViTConfig,
    ViTModel,
)

import made_data
from ova.userdata.vocabulary import wordpiece


def bert(folder: Path) -> None:
    tokenizer = wordpiece([" ".join(words) for words in made_data.TOPICS.values()] * 2)
    config = BertConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=40,
    )
    BertModel(config).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))


def vit(folder: Path) -> None:
    config = ViTConfig(
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        image_size=16,
        patch_size=8,
    )
    ViTModel(config).save_pretrained(folder)


def resnet(folder: Path) -> None:
    config = ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic")
    ResNetModel(config).save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(json.dumps({"size": {"height": 32}}))


ENCODERS = {"bert": bert, "vit": vit, "resnet": resnet}
