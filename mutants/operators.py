"""Every wrong version of a source file that differs from it in one small place.

Written by hand because the mutation testers of the field start a process for every mutant (seconds
for torch alone) and keep no reason beside a mutant that is equivalent.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

OPERATORS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.IsNot: ("is not", "is"),
    ast.Is: ("is", "is not"),
    ast.NotIn: ("not in", "in"),
    ast.In: ("in", "not in"),
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "/"),
    ast.Mod: ("%", "//"),
    ast.Pow: ("**", "*"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
}
_PAIRS = [
    ("min", "max"),
    ("argmin", "argmax"),
    ("amin", "amax"),
    ("minimum", "maximum"),
    ("clamp_min", "clamp_max"),
    ("sum", "mean"),
    ("floor", "ceil"),
    ("zeros", "ones"),
    ("zeros_like", "ones_like"),
    ("any", "all"),
    ("log", "log1p"),
    ("exp", "expm1"),
    ("softplus", "relu"),
]
NAMES = dict(_PAIRS) | {right: left for left, right in _PAIRS}
STRINGS = {"left": "right", "right": "left", "linear": "nearest"}
# The last axis of a matrix is also its second: these would only add equivalents.
AXES = {"dim", "axis", "start_dim", "stacklevel"}


@dataclass(frozen=True)
class Mutant:
    """One wrong version: `before` and `after` are the changed line, stripped.

    A test reaches it by running one of `lines`, those of its statement; what runs at import has none.
    """

    line: int
    before: str
    after: str
    source: str
    lines: range

    def __str__(self) -> str:
        return f"{self.before}  ->  {self.after}"


@dataclass(frozen=True)
class _Edit:
    """Replace the characters from `start` to `end` of the source."""

    start: int
    end: int
    text: str
    lines: range


def mutants(source: str) -> list[Mutant]:
    """All mutants of a source file, in its order, each of them valid Python that differs."""
    found = []
    starts = _line_starts(source)
    tree = ast.dump(ast.parse(source))
    for edit in _Walk(source, starts).edits(ast.parse(source)):
        wrong = source[: edit.start] + edit.text + source[edit.end :]
        try:
            if ast.dump(ast.parse(wrong)) == tree:
                continue
        except SyntaxError:
            continue
        line = source.count("\n", 0, edit.start)
        after = wrong[starts[line] :].split("\n", 1)[0].strip()
        before = source[starts[line] :].split("\n", 1)[0].strip()
        found.append(Mutant(line + 1, before, after, wrong, edit.lines))
    return found


def _line_starts(source: str) -> list[int]:
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return starts


class _Walk:
    """Goes through the tree and leaves out what no test should have to notice."""

    def __init__(self, source: str, starts: list[int]) -> None:
        self.source, self.starts = source, starts

    def start(self, node: ast.expr | ast.stmt) -> int:
        return self._place(node.lineno, node.col_offset)

    def end(self, node: ast.expr | ast.stmt) -> int:
        return self._place(node.end_lineno or 0, node.end_col_offset or 0)

    def _place(self, line: int, column: int) -> int:
        """An offset in characters; the tree counts bytes."""
        text = self.source[self.starts[line - 1] : self.starts[line]]
        return self.starts[line - 1] + len(text.encode()[:column].decode())

    def edits(self, node: ast.AST, lines: range = range(0)) -> Iterator[_Edit]:
        if lines and isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            last = max(node.lineno, body[0].lineno - 1) if body else node.end_lineno
            lines = range(node.lineno, (last or node.lineno) + 1)
        if isinstance(node, (ast.expr, ast.stmt)):
            for start, end, text in self.of(node):
                yield _Edit(start, end, text, lines)
        if isinstance(node, (ast.JoinedStr, ast.Raise, ast.Assert)):
            return  # the words of an error, and what only a type checker reads
        for child, runs_later in _children(node):
            yield from self.edits(child, range(1, 2) if runs_later else lines)

    def of(  # noqa: PLR0912  one case for each kind of change
        self, node: ast.expr | ast.stmt
    ) -> Iterator[tuple[int, int, str]]:
        match node:
            case ast.Compare(left=left, ops=ops, comparators=others):
                for op, (before, after) in zip(ops, pairwise([left, *others]), strict=True):
                    yield from self.between(op, before, after)
            case ast.BinOp(left=left, op=op, right=right):
                yield from self.between(op, left, right)
            case ast.BoolOp(op=op, values=values):
                for before, after in pairwise(values):
                    yield from self.between(op, before, after)
            case ast.AugAssign(target=target, op=op, value=value):
                yield from self.between(op, target, value)
            case ast.UnaryOp(operand=operand):
                yield self.start(node), self.start(operand), ""
            case ast.Constant():
                yield from self.constant(node)
            case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
                if not isinstance(test, (ast.Compare, ast.BoolOp, ast.UnaryOp)):
                    text = self.source[self.start(test) : self.end(test)]
                    yield self.start(test), self.end(test), f"(not {text})"
            case ast.Expr(value=ast.Call()) | ast.Raise():
                yield self.start(node), self.end(node), "pass"
            case ast.Name(id=name) if name in NAMES:
                yield self.start(node), self.end(node), NAMES[name]
            case ast.Attribute(attr=name) if name in NAMES:
                yield self.end(node) - len(name), self.end(node), NAMES[name]
            case ast.Call():
                yield from self.dropped_keywords(node)

    def between(
        self, op: ast.AST, before: ast.expr, after: ast.expr
    ) -> Iterator[tuple[int, int, str]]:
        if type(op) not in OPERATORS:
            return
        written, wrong = OPERATORS[type(op)]
        at = self.source.find(written, self.end(before), self.start(after))
        if at >= 0:
            yield at, at + len(written), wrong

    def constant(self, node: ast.Constant) -> Iterator[tuple[int, int, str]]:
        match node.value:
            case bool(value):
                wrong = str(not value)
            case int(value):
                wrong = str(value + 1)
            case float(value):
                wrong = repr(value * 1.05 if value else 1.0)
            case str(value) if value in STRINGS:
                wrong = repr(STRINGS[value])
            case _:
                return
        yield self.start(node), self.end(node), wrong

    def dropped_keywords(self, node: ast.Call) -> Iterator[tuple[int, int, str]]:
        for keyword in node.keywords:
            if keyword.arg is None or keyword.arg in AXES:
                continue
            start = self._place(keyword.lineno, keyword.col_offset)
            end = self.end(keyword.value)
            comma = self.source.rfind(",", 0, start)
            alone = self.source[comma + 1 : start].strip()
            yield (start, end, "") if comma < 0 or alone else (comma, end, "")


def _children(node: ast.AST) -> Iterator[tuple[ast.AST, bool]]:
    """What is worth changing below a node, and whether it runs only when a function is called."""
    match node:
        case ast.FunctionDef(name="__repr__" | "__str__"):
            return
        case ast.FunctionDef(args=args, body=body):
            yield from ((child, False) for child in [*args.defaults, *args.kw_defaults] if child)
            yield from ((child, True) for child in body if not _is_docstring(child))
        case ast.ClassDef(
            bases=bases, body=body
        ):  # whether its values are frozen changes no number
            yield from ((child, False) for child in [*bases, *body] if not _is_docstring(child))
        case ast.AnnAssign(value=value):
            if value is not None:
                yield value, False
        case ast.keyword(arg=name) if name in AXES:
            return
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return
        case ast.Subscript(value=ast.Attribute(attr="shape") as value):
            yield value, False
        case _:
            yield from ((child, False) for child in ast.iter_child_nodes(node))


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
