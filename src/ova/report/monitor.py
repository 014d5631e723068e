"""The page of `ova monitor`: what changed and since when, what each bettor has, and how sure that is."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template

import altair as alt

from ova.files import Row, write_text
from ova.posthoc.monitoring.monitor import INPUTS, PROMISE
from ova.report import theme
from ova.report.figures.figure import Figure
from ova.report.markup import Markup, el, join, script_json, table
from ova.report.numbers import percent
from ova.report.page import asset, bundle, payload, policy
from ova.report.sections import Page

ENDS = 6.0  # powers of ten that are drawn to both sides of an alarm
NONE_YET = "–"
AXIS = alt.Axis(tickCount=8)


@dataclass(frozen=True)
class Told:
    """What one bettor found, in words and numbers."""

    name: str
    about: str
    n: int
    most: float  # log wealth
    level: float
    alarm: str = ""  # the row after which it was raised
    since: str = ""


@dataclass(frozen=True, kw_only=True)
class MonitorFacts:
    """What a log says of a model."""

    rows: int
    labels: int
    answers: int  # that have a label
    refused: tuple[float, float]  # shares of the log, and of the rows that carry the promise
    false_alarms: float
    certainty: float  # of the bounds
    promised: float | None  # accuracy
    told: Sequence[Told]
    warnings: Sequence[str]
    wealth: Sequence[Row]  # label, row, and log10 of the wealth over what an alarm needs
    bounds: Sequence[Row]  # labels, seen, low, high
    refusals: Sequence[Row]  # row, share


def write_monitor(facts: MonitorFacts, output: Path) -> None:
    """Write the page, atomically."""
    write_text(output, html(facts))


def html(facts: MonitorFacts) -> str:
    """The page as text; the same facts give the same text."""
    page = Page()
    body = join(
        el("h1", "Is this still the world that the model knows?"),
        el("p", lead(facts), class_="lead"),
        [el("p", warning, class_="first") for warning in facts.warnings],
        el("div", [el("section", card, class_="card") for card in cards(facts)], class_="cards"),
        drawing(page, "wealth", facts.wealth, wealth(facts)),
        drawing(page, "bounds", facts.bounds, accuracy(facts)) if facts.bounds else None,
        drawing(page, "refusals", facts.refusals, refusals(facts)),
        el("h3", "Everything that is watched"),
        everything(facts),
    )
    library, script = bundle(), asset("page.js")
    button = el(
        "button", "Dark", id="theme", type="button", aria_label="Switch between light and dark"
    )
    return Template(asset("template.html")).substitute(
        policy=policy(library, script),
        title="ova monitor",
        style=asset("style.css"),
        controls=el("div", el("span", "ova monitor", class_="slide"), button, class_="inner"),
        body=body,
        footer="Made by ova. An alarm stays; so does a rate of false alarms that was chosen beforehand.",
        data=script_json(payload(page)),
        library=library,
        script=script,
    )


def lead(facts: MonitorFacts) -> str:
    """What was looked at, and how often such a page cries wolf."""
    return (
        f"{facts.rows:,} answers, {facts.labels:,} of them with a label, beside the rows that carry the model's promise. "
        f"However long and however often one looks, the chance that there is ever a false alarm is {facts.false_alarms:g} at most."
    )


def cards(facts: MonitorFacts) -> list[Markup]:
    """The three questions: the inputs, the promise, the refusals."""
    now, before = facts.refused
    return [
        alarms("Have the inputs changed?", INPUTS, facts),
        kept(facts),
        join(
            el("h4", "How much is refused?"),
            el("p", percent(now), el("small", "of the log"), class_="big"),
            el("p", f"{percent(before)} of the rows that carry the promise are refused."),
        ),
    ]


def alarms(title: str, about: str, facts: MonitorFacts) -> Markup:
    """The alarms of one kind, the first one large."""
    found = sorted((t for t in facts.told if t.about == about and t.alarm), key=lambda t: -t.most)
    if not found:
        return join(
            el("h4", title), el("p", "No ", el("small", "Nothing speaks for it"), class_="big")
        )
    first = found[0]
    return join(
        el("h4", title),
        el("p", "Yes ", el("small", f"{first.name}, since about {first.since}"), class_="big"),
        el("ul", [el("li", f"{t.name}: sure after {t.alarm}") for t in found[:8]]),
        el("p", f"and {len(found) - 8} more, below", class_="unit") if len(found) > 8 else None,
    )


def kept(facts: MonitorFacts) -> Markup:
    """Whether the promise is kept, and between which bounds the accuracy lies."""
    title, watched = "Is a promise broken?", any(t.about == PROMISE for t in facts.told)
    top = alarms(title, PROMISE, facts)
    if not watched:
        big = el("p", f"{NONE_YET} ", el("small", "Nothing is promised of this log"), class_="big")
        top = join(el("h4", title), big)
    if not facts.bounds:
        return join(top, el("p", "No answer has a label, so nothing is known of their accuracy."))
    last = facts.bounds[-1]
    promised = "" if facts.promised is None else f"; promised {percent(facts.promised)}"
    return join(
        top,
        el(
            "p",
            f"Of {last['labels']:,} labelled answers {percent(last['seen'])} are right: between "
            f"{percent(last['low'])} and {percent(last['high'])} with certainty {facts.certainty:g}{promised}.",
        ),
    )


def everything(facts: MonitorFacts) -> Markup:
    """A row for each bettor."""
    head = ("what", "rows", "false alarms", "most wealth", "needed", "sure after", "since about")
    body = [
        (
            t.name,
            f"{t.n:,}",
            f"{t.level:.3g}",
            money(t.most),
            money(math.log(1 / t.level)),
            t.alarm or NONE_YET,
            t.since or NONE_YET,
        )
        for t in sorted(
            facts.told, key=lambda t: (not t.alarm, t.level * math.exp(-min(t.most, 700)))
        )
    ]
    return table(
        head,
        body,
        "Each begins with 1 and may go bankrupt; an alarm is to own what is needed.",
        "watched",
    )


def money(log: float) -> str:
    """A wealth from its logarithm.

    >>> money(0.0), money(math.log(1234)), money(100.0)
    ('1', '1230', '10^43')
    """
    if log > math.log(1e6):
        return f"10^{log / math.log(10):.0f}"
    value = math.exp(log)
    return f"{value:.3g}" if value < 1000 else f"{round(value, -len(str(int(value))) + 3):.0f}"


def drawing(page: Page, name: str, rows: Sequence[Row], figure: Figure) -> Markup:
    """A figure with its caption, drawn by the page's script."""
    spec = figure.spec(rows, [])
    spec.pop("$schema", None)
    spec["description"] = f"{figure.title} {figure.caption}"
    sets = spec.pop("datasets", {})
    page.sets.update(sets)
    page.charts.append({"name": name, "experiment": "", "spec": spec, "sets": list(sets)})
    caption = el("figcaption", el("h4", figure.title), el("p", figure.caption))
    chart = el("div", class_="chart", data_chart=len(page.charts) - 1, data_name=name)
    return el("figure", caption, chart)


def line(at: float) -> theme.Chart:
    """A level across the whole chart."""
    data = alt.Chart(theme.values([{"at": at}]))
    return data.mark_rule(color=theme.WRONG, strokeWidth=1.5, strokeDash=[5, 4]).encode(y="at:Q")


def figure(title: str, caption: str, chart: theme.Chart) -> Figure:
    """A chart as a figure; its rows are given when it is drawn."""
    return Figure(
        title=title,
        caption=caption,
        needs="a log",
        section="monitor",
        rows=lambda _: [],
        draw=lambda rows, _: theme.finish(
            chart.properties(width=640, height=240), rows, cell=300, extra=70
        ),
    )


def wealth(facts: MonitorFacts) -> Figure:
    """What each bettor has after each row."""
    labels = [*dict.fromkeys(row["label"] for row in facts.wealth)]
    y = alt.Y("wealth:Q", title="power of ten", scale=alt.Scale(domain=[-ENDS, ENDS], clamp=True))
    paths = (
        alt.Chart()
        .mark_line(strokeWidth=1.6, clip=True)
        .encode(
            x=alt.X("row:Q", title="row of the log", axis=AXIS),
            y=y,
            order="row:Q",
            color=theme.colour(labels),
            tooltip=[alt.Tooltip("label:N", title="what"), alt.Tooltip("row:Q", format=",")],
        )
    )
    return figure(
        "Who is getting rich?",
        "Bettors who lose on average while nothing has changed. Zero is where one owns what an alarm needs; "
        "the line of an alarm may fall again, the alarm stays.",
        alt.layer(paths, line(0)),
    )


def accuracy(facts: MonitorFacts) -> Figure:
    """The accuracy of the labelled answers with its bounds."""
    base = alt.Chart().encode(
        x=alt.X("labels:Q", title="labelled answers, as their labels came", axis=AXIS)
    )
    scale = alt.Scale(domain=[0, 1])
    tips = [theme.exact(name, name) for name in ("seen", "low", "high")]
    band = base.mark_area(opacity=0.25, color=theme.COLOURS["softmax"]).encode(
        y=alt.Y("low:Q", title="accuracy", scale=scale), y2="high:Q", tooltip=tips
    )
    seen = base.mark_line(color=theme.COLOURS["softmax"]).encode(y="seen:Q", order="labels:Q")
    level = [] if facts.promised is None else [line(facts.promised)]
    return figure(
        "How often are the answers right?",
        f"So far, with bounds that hold at every moment at once with certainty {facts.certainty:g}; "
        "broken is what was promised.",
        alt.layer(band, seen, *level),
    )


def refusals(facts: MonitorFacts) -> Figure:
    """The share that is refused, over time."""
    steps = (
        alt.Chart()
        .mark_line(interpolate="step-after", color=theme.COLOURS["ova"])
        .encode(
            x=alt.X("row:Q", title="row of the log", axis=AXIS),
            y=alt.Y("share:Q", title="refused", scale=alt.Scale(domainMin=0)),
            order="row:Q",
            tooltip=[theme.exact("share", "refused"), alt.Tooltip("row:Q", format=",")],
        )
    )
    return figure(
        "How much is refused?",
        "The share in each part of the log; broken is that of the rows that carry the promise.",
        alt.layer(steps, line(facts.refused[1])),
    )
