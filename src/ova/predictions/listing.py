"""A small table that prints as one honest line and shows itself in a notebook, everything escaped."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from importlib import import_module
from typing import Any, Generic, TypeVar, overload

from ova.errors import BadInput

T = TypeVar("T")
SHOWN = 50  # rows of a table in a notebook
LONGEST = 200  # characters of a cell there


class Table(Sequence[T], Generic[T]):
    """Rows with the same columns: records whose attributes are cells, or mappings from names to them.

    >>> table = Table([{"metric": "ece", "value": 0.25}], ("metric", "value"), "one metric")
    >>> table, table.to_dict()
    (one metric, {'metric': ['ece'], 'value': [0.25]})
    """

    def __init__(self, rows: Sequence[T], columns: Sequence[str], line: str) -> None:
        self.rows, self.columns, self.line = tuple(rows), tuple(columns), line

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[T]: ...
    def __getitem__(self, at: int | slice) -> T | Sequence[T]:
        return self.rows[at]

    def __iter__(self) -> Iterator[T]:
        return iter(self.rows)

    def to_dict(self) -> dict[str, list[Any]]:
        """The columns by name, a list each."""
        return {name: [cell(row, name) for row in self.rows] for name in self.columns}

    def to_pandas(self) -> Any:
        """The same as a data frame."""
        try:
            pandas: Any = import_module("pandas")  # who wants a data frame has it
        except ModuleNotFoundError:
            raise BadInput("this needs pandas: pip install pandas; to_dict() does not") from None
        return pandas.DataFrame(self.to_dict(), columns=list(self.columns))

    def __repr__(self) -> str:
        return self.line

    def _repr_html_(self) -> str:
        rows = [[cell(row, name) for name in self.columns] for row in self.rows[:SHOWN]]
        more = len(self.rows) - len(rows)
        end = f"<p>and {more} more rows</p>" if more else ""
        return f"<p>{escape(self.line)}</p>{html_table(self.columns, rows)}{end}"


def cell(row: Any, name: str) -> Any:
    """The cell of a row; None where a mapping has none."""
    return row.get(name) if isinstance(row, Mapping) else getattr(row, name)


def html_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table whose cells are text, whatever is in them.

    >>> html_table(["a"], [["<b>"], [None], [0.25]])
    '<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr><tr><td></td></tr><tr><td>0.25</td></tr></tbody></table>'
    """
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(shown(value))}</td>' for value in row)}</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def shown(value: Any) -> str:
    """A cell as text: six digits of a number, nothing for None, the beginning of a long text."""
    if value is None:
        return ""
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."
