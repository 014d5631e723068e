"""WordPiece with the vocabulary of BERT (uncased): sentences as rows of token ids."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ova.data.hub import hub_file
from ova.data.sources import Blob, Found, Layout, Origin, missing, places, search
from ova.errors import BadInput
from ova.files import reading, sha256

LENGTH = 32
SIZE = 30_522
PAD, UNKNOWN, START, END = "[PAD]", "[UNK]", "[CLS]", "[SEP]"

Pieces = Mapping[str, int]


def read_vocabulary(blobs: Sequence[Blob]) -> Pieces:
    """One word piece per line; its line is its number."""
    (blob,) = blobs
    with reading(blob.name, "a list of word pieces in UTF-8"):
        lines = blob.data.decode("utf-8").splitlines()
    pieces = {piece: number for number, piece in enumerate(lines)}
    if len(lines) != SIZE or len(pieces) != SIZE:
        raise BadInput(
            f"{blob.name}: the vocabulary of bert-base-uncased has {SIZE} word pieces, "
            f"here are {len(lines)} lines with {len(pieces)} different ones"
        )
    absent = [piece for piece in (PAD, UNKNOWN, START, END) if piece not in pieces]
    if absent or pieces[PAD] != 0:
        raise BadInput(f"{blob.name}: {', '.join(absent) or '[PAD] on the first line'} is missing")
    return pieces


def origin() -> Origin[Pieces]:
    """Where the vocabulary can come from."""
    return Origin(
        name="BERT vocabulary",
        folders=("bert-vocab", "bert-base-uncased", "."),
        layouts=(Layout(("vocab.txt",), read_vocabulary),),
        how="download vocab.txt of google-bert/bert-base-uncased from the hub",
    )


def vocabulary(data_dir: Path | None) -> Found[Pieces]:
    """The vocabulary from disk, else through the hub's client and its cache."""
    found = search(origin(), data_dir)
    if found is not None:
        return found
    try:
        path = hub_file("google-bert/bert-base-uncased", "vocab.txt")
    except ConnectionError as error:
        raise BadInput(missing(origin(), places(data_dir), str(error))) from error
    blob = Blob(str(path), path.read_bytes())
    return Found("BERT vocabulary", {"vocab.txt": sha256(path)}, lambda: read_vocabulary([blob]))


def bert(pieces: Pieces) -> Any:
    """BERT's tokenizer (uncased) with these word pieces."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    tokenizer = Tokenizer(models.WordPiece(dict(pieces), unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = ((piece, pieces[piece]) for piece in (END, START))
    tokenizer.post_processor = processors.BertProcessing(*ends)
    return tokenizer


def encode(pieces: Pieces, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
    """Token ids N x 32, [CLS] first, [SEP] last, 0 behind; and how many of them count."""
    tokenizer = bert(pieces)
    tokenizer.enable_truncation(LENGTH)
    tokenizer.enable_padding(pad_id=0, pad_token=PAD, length=LENGTH)
    rows = tokenizer.encode_batch(list(texts))
    x = torch.tensor([row.ids for row in rows]).reshape(-1, LENGTH)
    lengths = torch.tensor([sum(row.attention_mask) for row in rows], dtype=torch.long)
    return x, lengths
