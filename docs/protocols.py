"""The table of the experiments: data, model, training, formulations and search of each, in words."""

from committed import markdown

from ova.experiments import EXPERIMENTS
from ova.training.recipe import Experiment, Recipe


def every_protocol() -> str:
    """One row per experiment, read from its recipes."""
    header = ["data", "model", "training", "formulations x seeds", "search"]
    return markdown(header, map(row, EXPERIMENTS.values()), corner="experiment")


def row(experiment: Experiment) -> list[str]:
    """The cells of an experiment; what its formulations share is the first recipe's."""
    base, formulations = experiment.recipes[0], ", ".join(map(formulation, experiment.recipes))
    cells = [f"`{experiment.name}`", base.data, base.model, training(base)]
    return [*cells, f"{formulations} x {experiment.seeds}", search(experiment)]


def formulation(recipe: Recipe) -> str:
    """The formulation of a recipe, with what its last layer needs of its own."""
    faster = f" (last layer lr x {recipe.head_lr:g})" if recipe.head_lr != 1 else ""
    return f"`{recipe.formulation}`{faster}"


def training(recipe: Recipe) -> str:
    """How a recipe trains."""
    length = f"{recipe.steps:,} steps" if recipe.steps else f"{recipe.epochs:,} epochs"
    decay = f" by {recipe.decay_by:g} at {', '.join(f'{e:g}' for e in recipe.decay_at)}"
    words = [f"{length} of {recipe.batch_size:,}", f"{recipe.optimiser}, lr {recipe.lr:g}"]
    words.append(recipe.schedule + (decay if recipe.decay_at else ""))
    more = {"warm-up": recipe.warmup, "weight decay": recipe.weight_decay}
    more |= {"clip": recipe.clip, "dropout": recipe.dropout}
    more |= {"norms' biases lr x": recipe.bias_lr if recipe.bias_lr != 1 else 0}
    words += [f"{name} {value:g}" for name, value in more.items() if value]
    words += [f"crops by {recipe.crop}, {recipe.border}"] * bool(recipe.crop)
    words += [f"{recipe.flips} flips"] * (recipe.flips != "random")
    words += [f"sides {', '.join(f'{side:g}' for side in recipe.sides)}"] * bool(recipe.sides)
    words += [recipe.precision] * (recipe.precision != "32-true")
    return "; ".join(words)


def search(experiment: Experiment) -> str:
    """Where a search looks."""
    ranges = [
        f"{name} {where.low:g}..{where.high:g}{' (log)' if where.log else ''}"
        for name, where in experiment.search.items()
    ]
    return f"{experiment.trials} trials: {', '.join(ranges)}" if ranges else "-"
