"""What the configuration of a stranger's encoder may say: numbers and words about the network, nothing that fetches or runs."""

import inspect
from pathlib import Path
from typing import Any

from ova.errors import BadInput
from ova.files import naming, read_object, reading

Config = dict[str, Any]

# What transformers writes into every configuration, or once did, and what changes no network of ours.
ASIDE = {
    *(
        "model_type",
        "architectures",
        "transformers_version",
        "_name_or_path",
        "dtype",
        "torch_dtype",
    ),
    *("id2label", "label2id", "problem_type", "finetuning_task", "tokenizer_class", "return_dict"),
    *("output_attentions", "output_hidden_states", "output_past", "torchscript", "use_bfloat16"),
    *("gradient_checkpointing", "use_cache", "is_encoder_decoder", "chunk_size_feed_forward"),
    *("directionality", "pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers"),
    *("pooler_size_per_head", "pooler_type", "pruned_heads", "model_max_length"),
    *("stage_names", "out_features", "out_indices", "_out_features", "_out_indices"),
}
USUAL = {"position_embedding_type": "absolute"}  # of older files: the only one there is by now
# Parts of names by which a configuration has code, or weights of others, fetched.
FETCH = ("implementation", "kernel", "backbone", "quantization", "auto_map", "pipeline")


def read_config(folder: Path) -> Config:
    """The configuration of the encoder in a folder."""
    path = folder / "config.json"
    if not path.is_file():
        raise BadInput(
            f"{folder} is not the folder of an encoder as transformers writes it: "
            f"there is no {path.name} in it"
        )
    config = read_object(path)
    if not isinstance(config.get("model_type"), str):
        raise BadInput(f"{path} does not say its model_type")
    with naming(path):
        check(config, "")
    return config


def network_config(config: Config, source: object) -> Any:
    """The configuration as transformers takes it, made of the fields that its kind of network has."""
    from transformers import CONFIG_MAPPING

    kind = config.get("model_type")
    with naming(str(source)):
        if not isinstance(kind, str) or kind not in CONFIG_MAPPING:
            raise BadInput(f"transformers knows no network of model_type {kind!r}")
        check(config, "")
    made = CONFIG_MAPPING[kind]
    known = inspect.signature(made).parameters
    told = {k: v for k, v in config.items() if k not in ASIDE and (k, v) not in USUAL.items()}
    if unknown := [name for name in told if name not in known]:
        raise BadInput(
            f"{source}: the configuration says {unknown[0]!r}, which is no field of {kind!r} "
            "that ova knows; take it out if the network does not need it"
        )
    with reading(str(source), f"a configuration of {kind!r}"):
        return made(**told)


def check(config: Config, above: str) -> None:
    """Refuse fields, at any depth, by which something would be fetched."""
    for name, value in config.items():
        private = name.startswith("_") and name not in ASIDE
        if (private or any(part in name for part in FETCH)) and value is not None:
            raise BadInput(
                f"the configuration says {above + name!r}, by which a network can ask for code "
                "or weights from elsewhere; take it out"
            )
        if isinstance(value, dict):
            check(value, f"{above}{name}.")
