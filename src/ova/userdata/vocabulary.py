"""A WordPiece vocabulary from the user's texts, the same for the same texts.

The trainer of `tokenizers` breaks ties by the order of a hash table, which differs from run to
run; a run could then not be repeated or resumed.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from ova.data.wordpiece import END, PAD, START, UNKNOWN, bert

SPECIAL = (PAD, UNKNOWN, START, END)
MOST = 20_000  # word pieces
WORD, PIECE = 2, 5  # times that a word, and different words in which a piece, must occur
LONGEST = 5  # letters of a piece


def wordpiece(texts: Sequence[str]) -> Any:
    """A tokenizer whose pieces are the words, beginnings, inner parts and letters of the texts."""
    empty = bert({piece: k for k, piece in enumerate(SPECIAL)})
    words: Counter[str] = Counter()
    for text in texts:
        clean = empty.normalizer.normalize_str(text)
        words.update(word for word, _ in empty.pre_tokenizer.pre_tokenize_str(clean))
    return bert({piece: k for k, piece in enumerate(vocabulary(words))})


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
    found = [*SPECIAL, *letters, *(f"##{c}" for c in letters)]
    return list(dict.fromkeys(found + often + common))[: max(MOST, len(found))]


def ranked(counts: Counter[str]) -> list[tuple[str, int]]:
    """Most frequent first, equals by name."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def inner(word: str) -> Iterable[str]:
    """Beginnings of the word, and its inner parts as WordPiece writes them."""
    for start in range(len(word)):
        for stop in range(start + 2, min(start + LONGEST, len(word)) + 1):
            yield ("##" if start else "") + word[start:stop]
