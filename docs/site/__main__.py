"""The command: build the site, and say where it begins."""

import argparse
from pathlib import Path

from docs.site.build import build
from docs.site.places import ROOT


def main() -> None:
    words = argparse.ArgumentParser(
        prog="python -m docs.site", description="Build the documents as a site."
    )
    words.add_argument(
        "folder",
        nargs="?",
        type=Path,
        default=ROOT / "build" / "docs",
        help="where pages and site are written; build/docs if none is named",
    )
    words.add_argument("--run", action="store_true", help="run the notebooks for their outputs")
    given = words.parse_args()
    made = build(given.folder.resolve(), run=given.run)
    print(f"open {made / 'index.html'} in a browser")


if __name__ == "__main__":
    main()
