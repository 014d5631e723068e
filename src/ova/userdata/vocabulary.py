"""A WordPiece vocabulary from the user's texts, the same for the same texts.

The trainer of `tokenizers` breaks ties by the order of a hash table, which differs from run to
run; a run could then not be repeated or resumed.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

PAD, UNKNOWN, START, END = "[PAD]", "[UNK]", "[CLS]", "[SEP]"
MOST = 20_000  # word pieces
WORD, PIECE = 2, 5  # times that a word, and different words in which a piece, must occur
LONGEST = 5  # letters of a piece


def rules(model: Any) -> Any:
    """BERT's rules (uncased) around a WordPiece model."""
    from tokenizers import Tokenizer, normalizers, pre_tokenizers

    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def wordpiece(texts: Sequence[str]) -> Any:
    """A tokenizer whose pieces are the words, beginnings, inner parts and letters of the texts."""
    from tokenizers import models, processors

    empty = rules(models.WordPiece({UNKNOWN: 0}, unk_token=UNKNOWN))
    words: Counter[str] = Counter()
    for text in texts:
        clean = empty.normalizer.normalize_str(text)
        words.update(word for word, _ in empty.pre_tokenizer.pre_tokenize_str(clean))
    pieces = {piece: k for k, piece in enumerate(vocabulary(words))}
    tokenizer = rules(models.WordPiece(pieces, unk_token=UNKNOWN))
    tokenizer.post_processor = processors.BertProcessing((END, pieces[END]), (START, pieces[START]))
    return tokenizer


def vocabulary(words: Counter[str]) -> list[str]:
    """The pieces, in an order that depends on the words and their counts alone.

    >>> pieces = vocabulary(Counter({"going": 3, "go": 9}))
    >>> pieces[:4], "going" in pieces, "##g" in pieces
    (['[PAD]', '[UNK]', '[CLS]', '[SEP]'], True, True)
    """
    letters = sorted({letter for word in words for letter in word})
    often = [word for word, count in ranked(words) if count >= WORD]
    parts = Counter(piece for word in words for piece in {*inner(word)})
    common = [piece for piece, count in ranked(parts) if count >= PIECE]
    found = [PAD, UNKNOWN, START, END, *letters, *(f"##{c}" for c in letters)]
    return list(dict.fromkeys(found + often + common))[: max(MOST, len(found))]


def ranked(counts: Counter[str]) -> list[tuple[str, int]]:
    """Most frequent first, equals by name."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def inner(word: str) -> Iterable[str]:
    """Beginnings of the word, and its inner parts as WordPiece writes them."""
    for start in range(len(word)):
        for stop in range(start + 2, min(start + LONGEST, len(word)) + 1):
            yield ("##" if start else "") + word[start:stop]
