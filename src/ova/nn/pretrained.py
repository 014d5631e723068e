"""Bring a converted model of transformers back from where `save_pretrained` wrote it."""

from pathlib import Path
from typing import Any

from ova.errors import BadInput, without
from ova.nn.convert import Converted, convert
from ova.nn.modules import Loss


def from_pretrained(place: str | Path, **options: Any) -> Converted[Any]:
    """The model with its trained head, and its loss; options go to transformers' `from_pretrained`.

    Its own `from_pretrained` would build the usual last layer, and find no weights for it.

    >>> import tempfile
    >>> from transformers import BertConfig, BertForSequenceClassification
    >>> small = BertConfig(vocab_size=32, hidden_size=8, num_hidden_layers=1, num_attention_heads=1)
    >>> model, loss = convert(BertForSequenceClassification(small), "ova", classes=3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save_pretrained(folder)
    ...     again, loss = from_pretrained(folder)
    >>> type(again.classifier).__name__, again.config.num_labels
    ('Head', 3)
    """
    try:
        import transformers
    except ModuleNotFoundError as error:
        raise without(error) from None

    config = transformers.AutoConfig.from_pretrained(place)
    told: dict[str, str] | None = getattr(config, "ova", None)
    kind = getattr(transformers, (config.architectures or ["none"])[0], None)
    if told is None or kind is None:
        raise BadInput(
            f"{place} has no head of ours: load it with transformers, and give it to ova.convert"
        )

    formulation, layer = told["formulation"], told["layer"]

    class Again(kind):  # type: ignore[misc, valid-type]
        def __init__(self, *args: Any, **more: Any) -> None:
            super().__init__(*args, **more)
            convert(self, formulation, layer=layer)

    model = Again.from_pretrained(place, **options)
    model.__class__ = kind
    return Converted(model, Loss(formulation))
