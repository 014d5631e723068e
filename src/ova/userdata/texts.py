"""Texts: tokenised into rows of word-piece ids, by a tokenizer that is a JSON file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ova.errors import BadInput
from ova.files import read_object, reading
from ova.userdata.kind import Encoded, Examined, Kind, whole
from ova.userdata.request import Request
from ova.userdata.rows import Frame
from ova.userdata.vocabulary import wordpiece

TOKENIZER = "tokenizer.json"
LONGEST = 128  # word pieces that a text may have before it is cut
MOST = 1 << 16  # word pieces that a model folder may speak of
COVERED = 0.995  # share of the training texts that stay whole


@dataclass(frozen=True)
class Tokens:
    """Word pieces of the texts in a column, cut at `length`, padded with `pad`."""

    tokenizer: Any
    column: str
    length: int
    pad: int = 0

    @property
    def shape(self) -> tuple[int, ...]:
        """Size of the vocabulary, and the longest text."""
        return (self.tokenizer.get_vocab_size(), self.length)

    @property
    def takes(self) -> str:
        """The tokenizer is a file of its own."""
        return (
            f"int64 N x L: ids of {TOKENIZER}, {self.length} at most, the rest of a row {self.pad}"
        )

    def encode(self, frame: Frame) -> Encoded:
        """Token ids; an empty text is named."""
        cells, bad = texts_of(frame, self.column)
        texts = ["" if row in bad else cell for row, cell in enumerate(cells)]
        rows = self.tokenizer.encode_batch(texts)
        x = np.full((len(texts), self.length), self.pad, np.int64)
        for i, row in enumerate(rows):
            x[i, : len(row.ids)] = row.ids
        lengths = torch.tensor([len(row.ids) for row in rows], dtype=torch.long)
        return Encoded(torch.from_numpy(x), lengths, bad)

    def prepare(self, x: Tensor) -> Tensor:
        """Token ids are what the network takes."""
        return x

    def example(self, count: int, draw: torch.Generator) -> Tensor:
        """Word pieces and padding."""
        x = torch.randint(5, self.shape[0], (count, self.length), generator=draw)
        lengths = torch.randint(2, self.length + 1, (count, 1), generator=draw)
        return torch.where(torch.arange(self.length) < lengths, x, self.pad)

    def words(self, _: Tensor, /) -> str:
        """The column has the texts."""
        return ""

    def picture(self, _: Tensor, /) -> bytes:
        """None."""
        return b""

    def to_json(self) -> dict[str, Any]:
        """All but the tokenizer, which has its own file."""
        return {"column": self.column, "length": self.length, "pad": self.pad}


def from_json(content: Mapping[str, Any], folder: Path) -> Tokens:
    """What `to_json` gave, and the tokenizer beside it."""
    tokens = read_tokenizer(folder / TOKENIZER)
    column, length, pad = content["column"], content["length"], content["pad"]
    if not (isinstance(column, str) and whole(length, 1, MOST)):
        raise ValueError(f"texts of {column!r} with {length!r} word pieces")
    if not whole(pad, 0, tokens.get_vocab_size()):
        raise ValueError(f"{pad!r} is no word piece to pad with")
    return cut(Tokens(tokens, column, length, pad))


def cut(tokens: Tokens) -> Tokens:
    """The same, with the tokenizer set to cut and not to pad."""
    tokens.tokenizer.no_padding()
    tokens.tokenizer.enable_truncation(tokens.length)
    return tokens


def texts_of(frame: Frame, column: str) -> tuple[Sequence[Any], dict[int, str]]:
    """The cells of the column, and which rows have no text in it and why."""
    cells = frame.column(column, "the table", "--text")
    wrong = {
        row: "empty text" if cell is None or isinstance(cell, str) else f"{cell!r} is no text"
        for row, cell in enumerate(cells)
        if not (isinstance(cell, str) and cell.strip())
    }
    return cells, {**wrong, **frame.bad}


def examine(frame: Frame, request: Request) -> Examined:
    """Look at the texts of a column."""
    column, encoder = request.text, request.encoder
    cells, bad = texts_of(frame, column)
    keys = [b"" if row in bad else words(cell).encode() for row, cell in enumerate(cells)]

    def learn(rows: Sequence[int]) -> Tokens:
        texts = [cells[row] for row in rows]
        tokenizer, pad, most = from_encoder(encoder) if encoder else (wordpiece(texts), 0, LONGEST)
        tokenizer.no_truncation()
        counts = [len(row.ids) for row in tokenizer.encode_batch(texts)]
        wanted = int(np.quantile(counts, COVERED, method="higher"))
        return cut(Tokens(tokenizer, column, min(max(8, -(-wanted // 8) * 8), most), pad))

    return Examined(bad, keys, learn, lambda tokens: tokens.encode(frame))


def words(text: str) -> str:
    """A text without what the network does not read: texts of the same words are one input.

    >>> words(" Your  parcel ")
    'your parcel'
    """
    return " ".join(text.lower().split())


def read_tokenizer(path: Path) -> Any:
    """A tokenizer file; it is data, nothing in it runs."""
    from tokenizers import Tokenizer

    with reading(path, "a tokenizer"):
        return tried(Tokenizer.from_str(path.read_text("utf-8")))


def tried(tokenizer: Any) -> Any:
    """The tokenizer, if it can say something about letters that it does not know."""
    tokenizer.encode("\u2603 \U0001f995")
    return tokenizer


def from_encoder(folder: Path) -> tuple[Any, int, int]:
    """The tokenizer of an encoder's folder, its padding and the longest text that it takes."""
    from ova.models.configuration import read_config

    config = read_config(folder)
    with reading(folder / "config.json", "the configuration of an encoder of texts"):
        most = min(LONGEST, int(config.get("max_position_embeddings", LONGEST)) - 2)
        pad = int(config.get("pad_token_id") or 0)
    if (folder / TOKENIZER).is_file():
        return read_tokenizer(folder / TOKENIZER), pad, most
    if (folder / "vocab.txt").is_file():
        return from_vocabulary(folder), pad, most
    raise BadInput(f"{folder}: there is neither {TOKENIZER} nor vocab.txt in it")


def from_vocabulary(folder: Path) -> Any:
    """BERT's tokenizer from its list of word pieces."""
    from tokenizers import BertWordPieceTokenizer

    settings = folder / "tokenizer_config.json"
    known = read_object(settings) if settings.is_file() else {}
    lowercase = bool(known.get("do_lower_case", True))
    with reading(folder / "vocab.txt", "a list of word pieces"):
        found = BertWordPieceTokenizer(str(folder / "vocab.txt"), lowercase=lowercase)
        return tried(found._tokenizer)


KIND = Kind(
    fits=lambda request: not request.data.is_dir() and bool(request.text),
    examine=examine,
    load=from_json,
    settings={"model": "text-cnn", "optimiser": "adamw", "lr": 1e-3, "weight_decay": 0.01,
              "schedule": "linear", "dropout": 0.3},
    steps=4_300, epochs=(10, 20), batch=(16, 64),
)  # fmt: skip
