"""A page without charts: the look of the report, no script but its own, nothing from the network."""

from collections.abc import Sequence
from string import Template
from typing import Any

from ova.report.markup import Markup, el, join
from ova.report.page import asset, policy

MORE = """
.sheet td, .sheet th { overflow-wrap: anywhere; }
.sheet img, .thumbs img { width: 4.5rem; height: 4.5rem; object-fit: cover; border-radius: 6px;
  image-rendering: pixelated; margin: 0 .4rem .4rem 0; }
.words { color: var(--soft); } .words b { color: var(--ink); font-weight: 600; }
.group { margin: 1rem 0; } .group ul { margin: .4rem 0; padding-left: 1.15rem; }
.group > summary { cursor: pointer; } .group details { margin: .3rem 0; }
.group h3 { display: inline; font-size: 1.15rem; } .group .tag { color: var(--soft); }
"""
SCRIPT = """
"use strict";
const root = document.documentElement, button = document.getElementById("theme");
const dark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
const name = () => { button.textContent = dark() ? "Light" : "Dark"; };
button.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; name(); });
name();
"""
PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="$policy">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>$title</title>
<link rel="icon" href="data:,">
<style>$style</style>
</head>
<body>
<a class="skip" href="#main">Skip to the results</a>
<header class="bar">$bar</header>
<main id="main">
$body
</main>
<footer class="foot">Made by ova.</footer>
<script>$script</script>
</body>
</html>
""")


def small_page(title: str, body: Sequence[Any]) -> str:
    """The page as text."""
    button = el(
        "button", "Dark", id="theme", type="button", aria_label="Switch between light and dark"
    )
    return PAGE.substitute(
        policy=policy(SCRIPT),
        title=join("ova · ", title),
        style=Markup(asset("style.css") + MORE),
        bar=el("div", el("span", title, class_="slide"), button, class_="inner"),
        body=join(*body),
        script=SCRIPT,
    )
