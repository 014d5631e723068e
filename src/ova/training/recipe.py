"""A recipe: every setting that decides the result of a run, validated, hashed, kept as JSON."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from math import inf
from pathlib import Path, PurePath
from typing import Any

from ova.data import DATASETS
from ova.errors import BadInput, pick
from ova.files import read_json, read_lines
from ova.models import MODELS, model
from ova.nn.formulations import FORMULATIONS
from ova.training.balance import CHOICES

MEMBERS = "runs"  # what the recipe of an ensemble has besides: its runs
OWN = "own"  # data that no table knows: the user's, read by `ova train`
OPTIMISERS = ("sgd", "adam", "adamw", "lbfgs")  # the last for a head alone, on all rows at once
SCHEDULES = ("constant", "linear", "cosine", "steps")


def number(default: Any, low: float, high: float, meaning: str) -> Any:
    """A numeric field, its range and what it means."""
    return field(default=default, metadata={"range": (low, high), "meaning": meaning})


def choice(
    default: Any, among: Mapping[str, Any] | tuple[str, ...], meaning: str, **more: Any
) -> Any:
    """A field that names an entry of a table; `lookup` may know more names than the table has."""
    return field(default=default, metadata={"among": tuple(among), "meaning": meaning, **more})


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One training run and its evaluation; two equal recipes give equal measurements.

    >>> recipe = Recipe(
    ...     experiment="mine", data="digits", model="mlp", formulation="ova", epochs=5, lr=0.1
    ... )
    >>> recipe.batch_size, recipe.id.startswith("digits-ova-s0-")
    (128, True)
    """

    experiment: str = field(
        metadata={"meaning": "the experiment that the run belongs to", "folder": True}
    )
    data: str = choice(MISSING, (*DATASETS, OWN), "data set")
    model: str = choice(MISSING, MODELS, "backbone", lookup=model)
    formulation: str = choice(MISSING, FORMULATIONS, "head, link and loss")
    seed: int = number(0, 0, 2**31 - 1, "decides the first weights, the order and the noise")
    epochs: int = number(MISSING, 1, 100_000, "passes over the training set")
    steps: int = number(0, 0, 10**9, "stop after so many steps; 0: the epochs decide")
    batch_size: int = number(128, 1, 2**20, "global: divided among all processes")
    optimiser: str = choice("sgd", OPTIMISERS, "update rule")
    lr: float = number(MISSING, 0, 1e3, "largest learning rate")
    head_lr: float = number(1.0, 0, 1e6, "learning rate of the last layer, in multiples of lr")
    bias_lr: float = number(1.0, 0, 1e6, "learning rate of the biases of norms, in multiples of lr")
    momentum: float = number(0.9, 0, 1, "Nesterov momentum of SGD, beta 1 of Adam")
    eps: float = number(1e-8, 0, 1, "Adam's epsilon")
    weight_decay: float = number(0.0, 0, 1, "L2 on weight matrices; decoupled for adamw")
    schedule: str = choice("constant", SCHEDULES, "learning rate over the run")
    warmup: float = number(0.0, 0, 100_000, "epochs of linear warm-up")
    lr_start: float = number(0.0, 0, 1, "where the warm-up begins, in multiples of lr")
    lr_end: float = number(0.0, 0, 1, "where linear and cosine end, in multiples of lr")
    decay_at: tuple[float, ...] = field(
        default=(), metadata={"range": (0, 100_000), "meaning": "epochs where `steps` decays"}
    )
    decay_by: float = number(0.1, 0, 1, "factor of each decay")
    clip: float = number(0.0, 0, inf, "largest norm of the gradient; 0: no clipping")
    dropout: float = number(0.0, 0, 0.99, "dropout of the backbone")
    members: int = number(
        1, 1, 1000, "networks, trained with seeds that follow from the seed; their mean p predicts"
    )
    samples: int = number(
        0, 0, 10_000, "passes with dropout on, whose mean p predicts; 0: one pass without"
    )
    augment: str = choice(
        "usual",
        ("usual", "none", "augmix", "pixmix"),
        "random changes of training examples: the data set's own, none, or for images a mixture besides",
    )
    crop: int = number(0, 0, 1024, "pixels that images are moved at random; 0: the data set's own")
    border: str = choice("black", ("black", "reflect"), "what a moved image has beyond its border")
    flips: str = choice(
        "random", ("random", "alternate"), "mirrored by chance, or every other epoch"
    )
    sides: tuple[float, ...] = field(
        default=(),
        metadata={
            "range": (1, 4096),
            "meaning": "sides of training images, each for an equal part of the epochs; none: as they are",
        },
    )
    norm_momentum: float = number(
        0.0, 0, 1, "share of a batch in batch norm's statistics; 0: the model's own"
    )
    ema: float = number(0.0, 0, 0.999999, "decay of averaged weights; 0: no averaging")
    keep: str = choice("last", ("last", "best"), "which epoch predicts; best by validation loss")
    patience: int = number(0, 0, 100_000, "epochs without a better validation loss; 0: never stop")
    balance: str = choice(
        "off", CHOICES, "rare classes count more while training; auto: tried, kept where it helps"
    )
    none_weight: float = number(1.0, 0, 1e6, "weight of training examples of none of the classes")
    precision: str = choice(
        "32-true", ("32-true", "bf16-mixed", "16-mixed"), "arithmetic of the run"
    )
    shift: str = field(
        default="all", metadata={"meaning": "`all`, `none`, a subset of corruptions, or one type"}
    )
    shift_examples: int = number(0, 0, 10**9, "examples of each shifted set; 0: all of them")

    def __post_init__(self) -> None:
        for each in fields(self):
            check(each, getattr(self, each.name))

    @property
    def digest(self) -> str:
        """The SHA-256 of what differs from the defaults, so that a new field renames no old run."""
        special = {f.name: getattr(self, f.name) for f in fields(self)}
        special = {name: v for name, v in special.items() if v != DEFAULTS.get(name, MISSING)}
        return hashlib.sha256(json.dumps(special, sort_keys=True).encode()).hexdigest()

    @property
    def id(self) -> str:
        """The name of the run's folder: readable first, unique last."""
        return f"{self.data}-{self.formulation}-s{self.seed}-{self.digest[:8]}"


DEFAULTS = {each.name: each.default for each in fields(Recipe) if each.default is not MISSING}


def check(spec: Field, value: Any) -> None:
    """Refuse a value outside the field's type, range or table."""
    kind = spec.type if isinstance(spec.type, type) else None
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        kind = int
    if kind and (not isinstance(value, kind) or isinstance(value, bool)):
        raise BadInput(f"{spec.name} = {value!r}: {wanted(spec)}")
    if "folder" in spec.metadata and not is_name(value):
        raise BadInput(f"{spec.name} = {value!r}: {wanted(spec)}")
    if "lookup" in spec.metadata:
        spec.metadata["lookup"](value)
    elif "among" in spec.metadata:
        pick(dict.fromkeys(spec.metadata["among"]), value, spec.name)
    if "range" in spec.metadata:
        low, high = spec.metadata["range"]
        for each in value if isinstance(value, tuple) else (value,):
            if not low <= each <= high:
                raise BadInput(f"{spec.name} = {value!r}: {wanted(spec)}")


def is_name(text: str) -> bool:
    """Whether a folder of this name lies in the folder where it is made.

    >>> [is_name(text) for text in ("toy", "a b", "..", "a/b", "/a", "")]
    [True, True, False, False, False, False]
    """
    return PurePath(text).name == text and text not in ("", "..") and "\0" not in text


def wanted(spec: Field) -> str:
    """What a field takes, in words."""
    if "folder" in spec.metadata:
        return "wanted the name of a folder, not a path"
    if "among" in spec.metadata:
        return "one of " + ", ".join(spec.metadata["among"])
    kind = {int: "a whole number", float: "a number", str: "text"}.get(spec.type, "numbers")  # type: ignore[arg-type]
    if "range" not in spec.metadata:
        return f"wanted {kind}"
    low, high = spec.metadata["range"]
    return f"wanted {kind} from {low:g} to {high:g} ({spec.metadata['meaning']})"


# Every field with what it means and takes.
SETTINGS = {each.name: f"{each.metadata['meaning']}: {wanted(each)}" for each in fields(Recipe)}


def override(recipe: Recipe, settings: Iterable[str]) -> Recipe:
    """The recipe with `key=value` settings as typed on a command line.

    >>> override(Recipe(experiment="e", data="toy", model="mlp", formulation="ova", epochs=1, lr=1),
    ...          ["epochs=3", "lr=0.1"]).lr
    0.1
    """
    return replace(recipe, **dict(parse(setting) for setting in settings))


def parse(setting: str) -> tuple[str, Any]:
    """The field and the typed value that a `key=value` names."""
    name, equals, text = setting.partition("=")
    if not equals:
        raise BadInput(f"--set {setting!r}: wanted key=value, for example epochs=10")
    spec = pick({each.name: each for each in fields(Recipe)}, name, "setting")
    try:
        if spec.type in (int, float, str):
            return name, spec.type(text)
        return name, tuple(float(part) for part in text.split(",") if part)
    except ValueError:
        raise BadInput(f"{name} = {text!r}: {wanted(spec)}") from None


def from_json(content: Mapping[str, Any], source: Path | str) -> Recipe:
    """The recipe in a JSON object; the error names the file and what is wrong with it."""
    known = {each.name for each in fields(Recipe)}
    if isinstance(content, Mapping) and MEMBERS in content:
        raise BadInput(
            f"{source} is of an ensemble, which `ova ensemble` makes from the folders of its members, "
            f"{', '.join(content[MEMBERS])}; run those"
        )
    if not isinstance(content, Mapping) or set(content) - known:
        extra = sorted(set(content) - known) if isinstance(content, Mapping) else content
        raise BadInput(f"{source} is not a recipe: it has {extra}; known are {sorted(known)}")
    lists = {name: tuple(value) for name, value in content.items() if isinstance(value, list)}
    try:
        return Recipe(**{**content, **lists})
    except (TypeError, BadInput) as error:
        raise BadInput(f"{source} is not a valid recipe: {error}") from None


def load(path: Path) -> Recipe:
    """Read a recipe file."""
    return from_json(read_json(path), path)


def load_all(path: Path) -> list[Recipe]:
    """The recipes of a file: one of `.json`; of `.jsonl` one per line, alone or as its `recipe`.

    So the `runs.jsonl` of committed results is a file of recipes too.
    """
    if path.suffix != ".jsonl":
        return [load(path)]
    try:
        rows = read_lines(path)
    except OSError as error:
        raise BadInput(f"{path} cannot be read as recipes: {error}") from None
    if not rows:
        raise BadInput(f"{path} has no recipe; wanted one JSON object per line")
    return [
        from_json(row.get("recipe", row), f"{path}, recipe {number}")
        for number, row in enumerate(rows, 1)
    ]


@dataclass(frozen=True)
class Range:
    """Where a search looks for the value of a field, uniformly or uniformly in its logarithm.

    >>> Range(1e-4, 1e-2, log=True).at(0.5)
    0.001
    """

    low: float
    high: float
    log: bool = False

    def at(self, share: float) -> float:
        """The value at a share of the way from low to high, to 6 digits: it is written to files."""
        if self.log:
            return float(f"{self.low * (self.high / self.low) ** share:.6g}")
        return float(f"{self.low + (self.high - self.low) * share:.6g}")


@dataclass(frozen=True)
class Experiment:
    """A named list of recipes, one per formulation, how many seeds each is run with, and its search."""

    name: str
    about: str
    recipes: tuple[Recipe, ...]
    seeds: int = 1
    search: Mapping[str, Range] = field(default_factory=dict)
    trials: int = 0

    def expand(
        self, only: Iterable[str] = (), seeds: int = 0, settings: Iterable[str] = ()
    ) -> list[Recipe]:
        """The runs of the experiment: chosen formulations, seeds 0 to N - 1, overridden settings."""
        settings, count = tuple(settings), seeds or self.seeds
        bases = [self.base(formulation) for formulation in only] or list(self.recipes)
        runs = [replace(base, seed=seed) for base in bases for seed in range(count)]
        return list(dict.fromkeys(override(run, settings) for run in runs))

    def base(self, formulation: str) -> Recipe:
        """The recipe of a formulation; one that the experiment does not list borrows the first's."""
        listed = {recipe.formulation: recipe for recipe in self.recipes}
        pick(FORMULATIONS, formulation, "formulation")
        return listed.get(formulation) or replace(self.recipes[0], formulation=formulation)


def each(
    base: Recipe, formulations: Iterable[str], **changes: Mapping[str, Any]
) -> tuple[Recipe, ...]:
    """The base recipe with every formulation; `changes` maps a field to values by formulation."""
    return tuple(
        replace(base, formulation=f, **{name: v[f] for name, v in changes.items() if f in v})
        for f in formulations
    )
