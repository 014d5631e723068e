"""The reference of the public names: a page for each thing one wants to do, made from the docstrings."""

import inspect
import textwrap
from collections.abc import Iterator, Mapping
from types import MappingProxyType

import ova
from docs.site.examples import fenced
from ova.metrics import DETECTION, METRICS

# Each public name is on one page, in this order; `pages` refuses a name that is on none.
GROUPS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "Train, load, answer": ("train", "load", "OneVsAllClassifier", "Selective", "BadInput"),
        "Last layers": ("Head", "Loss", "convert", "from_pretrained", "FORMULATIONS"),
        "Promises": ("fit_threshold", "fit_sets", "outside", "CALIBRATIONS", "Monitor"),
        "Measure": ("evaluate", "evaluate_scores", "Predictions"),
        "Experiments": ("Recipe", "EXPERIMENTS", "corrupt", "CORRUPTIONS"),
    }
)
# What the public functions give back: nobody makes these, everybody reads them.
GIVEN_BACK: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "Train, load, answer": ("modelfolder.trained.TrainedModel", "modelfolder.asking.Said"),
        "Promises": (
            "posthoc.threshold.Threshold",
            "posthoc.per_class.Thresholds",
            "posthoc.sets.Sets",
            "posthoc.outside.Outside",
        ),
        "Measure": ("metrics.measured.Evaluation",),
    }
)
PICTURES = "Pictures: ova.plot"
METRIC = "Metrics: ova.metrics"
OTHER_METRICS = ("bootstrap", "paired_difference", "Accumulator")


def pages() -> dict[str, str]:
    """The pages by their names."""
    placed = [name for names in GROUPS.values() for name in names]
    there = {*ova.__all__} - {"METRICS", "metrics", "plot"}
    if {*placed} != there or len(placed) != len({*placed}):
        raise ValueError(
            f"docs/site/reference.py must place each of {sorted(there ^ {*placed})} once"
        )
    made = {title: group(title) for title in GROUPS} | {METRIC: metrics(), PICTURES: pictures()}
    files = {
        title: f"{title.split(':')[0].split(',')[0].lower().replace(' ', '-')}.md" for title in made
    }
    return {"index.md": index(files)} | {files[title]: text for title, text in made.items()}


def index(files: Mapping[str, str]) -> str:
    """The first page: every public name with its first sentence."""
    lines = [
        "# Reference",
        "",
        "Every public name, `ova.` before it. Each example is run by the tests.",
        "",
    ]
    for title, file in files.items():
        lines += [f"## {title}", "", "| name | |", "|---|---|"]
        lines += [
            f"| [`{name}`]({file}#ova.{name}) | {cell(first(documented(name)))} |"
            for name in named(title)
        ]
        lines.append("")
    return "\n".join(lines)


def named(title: str) -> tuple[str, ...]:
    """The names on a page, without `ova.`."""
    if title == METRIC:
        return tuple(f"metrics.{name}" for name in (*METRICS, *DETECTION, *OTHER_METRICS))
    if title == PICTURES:
        return tuple(f"plot.{name}" for name in plots())
    return GROUPS[title]


def group(title: str) -> str:
    """A page of public names, then of what they give back."""
    lines = [f"# {title}", ""]
    for name in GROUPS[title]:
        lines += [table(name) if name.isupper() else f"::: ova.{name}", ""]
    for name in GIVEN_BACK.get(title, ()):
        lines += [f"::: ova.{name}", ""]
    return "\n".join(lines)


def table(name: str) -> str:
    """A table of the package: what there is, by name."""
    entries = getattr(ova, name)
    lines = [
        heading(name),
        "",
        first(documented(name)),
        "",
    ]
    lines += ["| name | |", "|---|---|"]
    lines += [f"| `{key}` | {cell(about(entry))} |" for key, entry in entries.items()]
    return "\n".join(lines)


TABLES: Mapping[str, str] = MappingProxyType(
    {
        "CALIBRATIONS": "The calibrations by name; `.fit(held_out_predictions)` gives one to apply.",
        "CORRUPTIONS": "The corruptions by name, as `ova.corrupt` takes them.",
        "EXPERIMENTS": "The experiments by name; `.recipes` are their runs.",
        "FORMULATIONS": "The formulations by name: a last layer, its link and its loss.",
    }
)


def about(entry: object) -> str:
    """What an entry of a table says of itself."""
    return first(str(getattr(entry, "about", None) or inspect.getdoc(entry) or ""))


def heading(name: str) -> str:
    """The heading of a name whose docstring is not found by looking at the source."""
    return f'## `ova.{name}` {{#ova.{name} data-toc-label="{name.rpartition(".")[2]}"}}'


def metrics() -> str:
    """The page of the metrics: those of the tables, which are made when they are asked for, and the others."""
    lines = [f"# {METRIC}", "", first(ova.metrics.__doc__ or ""), ""]
    lines += ["Formulas and which way is better: [metrics](../metrics.md).", ""]
    for name in (*METRICS, *DETECTION):
        lines += [function(name), ""]
    lines += [f"::: ova.metrics.{name}\n" for name in ("bootstrap", "paired_difference")]
    # It is not among the imports of `ova.metrics`, which would make every import of it slower.
    lines += [heading("metrics.Accumulator"), "", "::: ova.metrics.streaming.Accumulator"]
    return "\n".join([*lines, "    options:", "      show_root_heading: false", ""])


def function(name: str) -> str:
    """A metric as a function."""
    made = getattr(ova.metrics, name)
    return "\n".join(
        [
            heading(f"metrics.{name}"),
            "",
            f"```python\n{name}{inspect.signature(made)}\n```",
            "",
            fenced(inspect.getdoc(made) or ""),
        ]
    )


def plots() -> Iterator[str]:
    """The pictures, in the order of their file."""
    made = inspect.getsource(ova.plot).split("\ndef ")
    for name in (part.partition("(")[0] for part in made[1:]):
        if name == "drawn":  # what follows is how
            return
        yield name


def pictures() -> str:
    """The page of the pictures."""
    lines = [f"# {PICTURES}", "", inspect.getdoc(ova.plot) or "", ""]
    return "\n".join([*lines, *(f"::: ova.plot.{name}\n" for name in plots())])


def documented(name: str) -> str:
    """The docstring of a public name; of a table, what is said of it here."""
    found: object = ova
    for part in name.split("."):
        found = getattr(found, part)
    return TABLES[name] if name in TABLES else inspect.getdoc(found) or ""


def first(text: str) -> str:
    """The first paragraph of a text, in one line."""
    return " ".join(textwrap.dedent(text).strip().split("\n\n")[0].split())


def cell(text: str) -> str:
    """A text in a table."""
    return text.replace("|", "\\|")
