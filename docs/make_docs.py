"""Write the parts of README.md and docs/ that follow from the committed results and the source.

python docs/make_docs.py          writes them
python docs/make_docs.py --check  exits with 1 when one of them is not up to date

Such a part stands between <!-- name --> and <!-- end of name -->.
"""

import sys
from collections.abc import Callable, Mapping

import protocols
import scored
import tables
import tree
from committed import ROOT

Parts = Mapping[str, Callable[[], str]]
PAGES: dict[str, Parts] = {
    "README.md": {"results": tables.headline, "tree": tree.top},
    "docs/results.md": {"experiments": tables.every_experiment, "paper": tables.beside_the_paper},
    "docs/choosing.md": {
        "evidence": tables.evidence,
        "verdicts": tables.verdicts,
        "ladders": tables.ladders,
    },
    "docs/reproduction.md": {"claims": tables.claims, "variants": tables.variants},
    "docs/experiments.md": {"protocols": protocols.every_protocol},
    "docs/scores.md": {"scores": tables.scores, "measured": scored.every_experiment},
    "docs/tree.md": {"tree": tree.full},
}


def renewed(text: str, parts: Parts) -> str:
    """The text with the marked parts written anew; a part that it has no place for is an error."""
    for name, make in parts.items():
        begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        before, found, after = text.partition(begin)
        _, closed, rest = after.partition(end)
        if not found or not closed:
            raise ValueError(f"no place for a part: wanted {begin} and, below it, {end}")
        text = f"{before}{begin}\n{make()}\n{end}{rest}"
    return text


def main() -> None:
    stale = []
    for page, parts in PAGES.items():
        path = ROOT / page
        old = path.read_text(encoding="utf-8")
        new = renewed(old, parts)
        if new != old:
            stale.append(page)
            if "--check" not in sys.argv:
                path.write_text(new, encoding="utf-8")
    if stale and "--check" in sys.argv:
        sys.exit(f"not up to date: {', '.join(stale)}; run: make readme")


if __name__ == "__main__":
    main()
