"""Rows as columns, and columns as few bytes: what the page carries and unpacks itself."""

from typing import Any

from ova.files import Row


def pack(rows: list[Row]) -> Row:
    """Columns instead of rows; a column of few distinct values becomes these and places among them.

    >>> pack([{"a": "x", "b": 1}, {"a": "x", "b": 2}, {"a": "x"}])
    {'n': 3, 'a': {'of': ['x'], 'at': [0, 0, 0]}, 'b': [1, 2, None]}
    """
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: [row.get(name) for row in rows] for name in names}
    return {"n": len(rows)} | {name: shorter(column) for name, column in columns.items()}


def shorter(column: list[Any]) -> Any:
    """The column itself, or its distinct values and their places where that is shorter."""
    seen: dict[Any, int] = {}
    for value in column:
        key = (type(value).__name__, value)  # 1, 1.0 and True are equal, but not the same JSON
        seen.setdefault(key, len(seen))
        if len(seen) > len(column) / 3 + 1:
            return [tidy(value) for value in column]
    places = [seen[type(value).__name__, value] for value in column]
    return {"of": [tidy(value) for _, value in seen], "at": places}


def tidy(value: Any) -> Any:
    """Floats to six digits, as the curves have them, and whole ones without a point."""
    if isinstance(value, float):
        short = float(f"{value:.6g}")
        return int(short) if short.is_integer() else short
    return value
