"""The page: one HTML file with everything in it, which asks the network for nothing."""

import base64
import hashlib
from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from ova.files import Row, write_text
from ova.metrics.choice import PLAIN
from ova.report import comparison, runs, sections
from ova.report.markup import Markup, el, join, script_json
from ova.report.packing import pack, tidy
from ova.report.runs import labels
from ova.report.scores import WAYS, measured
from ova.report.theme import colours
from ova.report.thresholds import nearest
from ova.training.run_folder import Run


def write_report(paths: Sequence[Path], output: Path, *, baseline: Path | None = None) -> None:
    """Write the report on the runs below the paths; differences from a baseline's runs if given."""
    write_page(runs.read(paths), output, runs.read([baseline]) if baseline else None)


def write_page(
    found: Sequence[Run],
    output: Path,
    baseline: Sequence[Run] | None = None,
) -> None:
    """Write the report on these runs; with a baseline their differences."""
    write_text(output, html(found, baseline))


def html(found: Sequence[Run], old: Sequence[Run] | None = None) -> str:
    """The page as text; the same runs give the same text."""
    grouped = runs.experiments(found)
    page = sections.Page()
    body = [
        sections.experiment(page, name, mine, comparison.partner(name, old) if old else None)
        for name, mine in grouped.items()
    ]
    foot = "Made by ova. Every number above goes back to a run listed under Evidence."
    title = f"ova · {', '.join(grouped)}"
    return document(page, title, controls(found, page), join(opening(grouped), body), foot)


def document(page: sections.Page, title: str, bar: Markup, body: Markup, foot: str) -> str:
    """The whole file: what was written, and what the script draws from."""
    library, script = bundle(), asset("page.js")
    return Template(asset("template.html")).substitute(
        policy=policy(library, script),
        title=join(title),
        style=asset("style.css"),
        controls=bar,
        body=body,
        footer=join(foot),
        data=script_json(payload(page)),
        library=library,
        script=script,
    )


def payload(page: sections.Page) -> Row:
    """What the script reads: charts, their rows as columns, and the values at each threshold."""
    grid = steps(page)
    live = {name: {"grid": t["grid"], "runs": short(t["runs"])} for name, t in page.live.items()}
    return {
        "charts": page.charts,
        "sets": {name: pack(rows) for name, rows in page.sets.items()},
        "live": live,
        "grid": grid,
        "start": grid[nearest(grid, page.start)] if grid else page.start,
    }


def short(value: Any) -> Any:
    """The same value with its floats to six digits."""
    if isinstance(value, dict):
        return {key: short(part) for key, part in value.items()}
    return [short(part) for part in value] if isinstance(value, list) else tidy(value)


def steps(page: sections.Page) -> list[float]:
    """The slider's positions: every threshold of any experiment."""
    return sorted({t for table in page.live.values() if table["runs"] for t in table["grid"]})


def slider(page: sections.Page, nothing: str = "") -> Markup:
    """The threshold, or the word that there is none."""
    grid = steps(page)
    if not grid:
        return el("span", nothing, class_="slide quiet")
    at = nearest(grid, page.start)
    return el(
        "label",
        el("span", "Threshold"),
        el("input", type="range", id="threshold", min=0, max=len(grid) - 1, value=at),
        el("output", f"{grid[at]:g}", id="threshold-value", for_="threshold"),
        class_="slide",
    )


def theme_button() -> Markup:
    """Light or dark."""
    said = "Switch between light and dark"
    return el("button", "Dark", id="theme", type="button", aria_label=said)


def controls(found: Sequence[Run], page: sections.Page) -> Markup:
    """The bar: threshold, score, filters, light or dark."""
    names = labels(found)
    paint = colours(names)
    seeds = sorted({run.seed for run in found})
    forms = [
        check("labels", name, [el("i", class_="swatch", style=f"background:{paint[name]}"), name])
        for name in names
    ]
    menu = el(
        "details",
        el("summary", "Filter"),
        el(
            "div",
            el("fieldset", el("legend", "Formulation"), forms),
            el(
                "fieldset",
                el("legend", "Seed"),
                [check("seeds", s, s) for s in seeds],
                class_="seeds",
            ),
        ),
        class_="menu",
    )
    known = measured(found)
    options = [*WAYS.items(), *((name, name) for name in known if name != PLAIN)]
    switch = el(
        "label",
        el("span", "Score"),
        el("select", [el("option", text, value=name) for name, text in options], id="score"),
        class_="switch",
    ) if len(known) > 1 else None  # fmt: skip
    threshold = slider(page, "No thresholds were measured")
    return el("div", threshold, switch, menu, theme_button(), class_="inner")


def check(kind: str, value: Any, text: Any) -> Markup:
    """A box that shows or hides."""
    box = el("input", type="checkbox", checked=True, value=value, data_filter=kind)
    return el(
        "label", box, el("span", text, class_="label") if not isinstance(text, list) else text
    )


def opening(grouped: dict[str, list[Run]]) -> Markup:
    """Title, what the page is for, and the way to each experiment."""
    one = len(grouped) == 1
    links = [el("li", el("a", name, href=f"#experiment-{i}")) for i, name in enumerate(grouped)]
    return join(
        el("h1", "Can this model’s confidence be trusted?"),
        el(
            "p",
            "How often it is right, whether its confidence means what it says, where it breaks, and "
            "what a threshold costs and buys. A lower ECE means more honest confidence; an AUROC of 1 "
            "means that unknown inputs are always told apart, 0.5 that they never are.",
            class_="lead",
        ),
        el("noscript", el("p", "The charts need JavaScript; the tables do not.", class_="missing")),
        None if one else el("nav", el("ul", links, class_="toc"), aria_label="Experiments"),
    )


def asset(name: str) -> str:
    """A file that lies beside this module."""
    return (files("ova.report") / name).read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script that keeps its names to itself."""
    import vl_convert

    code = vl_convert.javascript_bundle("window.vegaEmbed=vegaEmbed;")
    # "</script" inside a string would end the element; the backslash changes nothing for JavaScript.
    return '"use strict";(()=>{' + code.replace("</script", "<\\/script") + "\n})();"


def policy(*scripts: str) -> str:
    """Nothing from the network, and no script but these: whatever a name holds cannot run.

    Vega compiles its expressions, hence unsafe-eval; styles are set by charts, hence unsafe-inline.
    """
    hashes = (hashlib.sha256(script.encode("utf-8")).digest() for script in scripts)
    known = " ".join(f"'sha256-{base64.b64encode(each).decode('ascii')}'" for each in hashes)
    return (
        f"default-src 'none'; script-src {known} 'unsafe-eval'; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
