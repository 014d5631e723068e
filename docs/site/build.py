"""Write pages, settings and scripts beside each other, and let Zensical make the site of them, strictly."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from docs.site.pages import SETTINGS, every_page, pictures, settings
from docs.site.places import HERE, ROOT

EXAMPLES, OFFLINE = HERE / "examples.py", HERE / "offline.js"
COLOUR = re.compile(r"\x1b\[[0-9;]*m")  # of a terminal
FETCHED = re.compile(r"""(?:src=|rel="?stylesheet"? href=)["']?(?P<url>https?://[^"' >]+)""")
SHIM = "https://unpkg.com/iframe-worker/shim"  # for the search from disk; ours needs no network


def build(folder: Path, run: bool = False) -> Path:
    """The site below the folder; what an earlier build left there is gone."""
    for old in ("pages", "site"):
        shutil.rmtree(folder / old, ignore_errors=True)
    pages, texts = folder / "pages", every_page(run)
    for name, text in texts.items():
        (pages / name).parent.mkdir(parents=True, exist_ok=True)
        (pages / name).write_text(text, encoding="utf-8")
    for file, name in pictures().items():
        (pages / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / file, pages / name)
    shutil.copyfile(EXAMPLES, folder / EXAMPLES.name)
    (folder / SETTINGS.name).write_text(settings(texts), encoding="utf-8")
    zensical(folder)
    offline(folder / "site")
    return folder / "site"


def zensical(folder: Path) -> None:
    """Make the site of the pages; end with what was said if they are not in order."""
    source = os.pathsep.join(
        [str(ROOT / "src"), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    )
    done = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict", "--clean"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": source},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode or not (folder / "site" / "index.html").exists():
        said = COLOUR.sub("", done.stdout + done.stderr).partition("Traceback")[0]
        sys.exit(f"{said or done.stderr}\nthe site was not built")


def offline(site: Path) -> None:
    """Put our script in the place of the one that would be fetched; nothing else may be fetched."""
    shutil.copyfile(OFFLINE, site / "assets" / OFFLINE.name)
    for page in sorted(site.rglob("*.html")):
        text = page.read_text(encoding="utf-8")
        up = "../" * (len(page.relative_to(site).parts) - 1)
        text = text.replace(SHIM, f"{up}assets/{OFFLINE.name}")
        if found := FETCHED.search(text):
            sys.exit(f"{page} would fetch {found['url']}; the site must open without a network")
        page.write_text(text, encoding="utf-8")
