"""Print the table of docs/experiments.md: `python -m ova.experiments`."""

from ova.experiments import EXPERIMENTS
from ova.training.recipe import Experiment, Range, Recipe

COLUMNS = ("experiment", "data", "model", "training", "formulations x seeds", "search")


def training(recipe: Recipe) -> str:
    """How a recipe trains, in words."""
    length = f"{recipe.steps:,} steps" if recipe.steps else f"{recipe.epochs:,} epochs"
    decay = f" by {recipe.decay_by:g} at {', '.join(f'{e:g}' for e in recipe.decay_at)}"
    words = [f"{length} of {recipe.batch_size:,}", f"{recipe.optimiser}, lr {recipe.lr:g}"]
    words.append(recipe.schedule + (decay if recipe.decay_at else ""))
    words += [f"warm-up {recipe.warmup:g}"] * bool(recipe.warmup)
    words += [f"weight decay {recipe.weight_decay:g}"] * bool(recipe.weight_decay)
    words += [f"clip {recipe.clip:g}"] * bool(recipe.clip)
    words += [f"dropout {recipe.dropout:g}"] * bool(recipe.dropout)
    return "; ".join(words)


def searched(experiment: Experiment) -> str:
    """Where a search looks, in words."""

    def words(name: str, where: Range) -> str:
        return f"{name} {where.low:g}..{where.high:g}{' (log)' if where.log else ''}"

    if not experiment.search:
        return "-"
    found = ", ".join(words(name, where) for name, where in experiment.search.items())
    return f"{experiment.trials} trials: {found}"


def ending(recipe: Recipe) -> str:
    """The formulation of a recipe, with what its last layer needs of its own."""
    faster = f" (last layer lr x {recipe.head_lr:g})" if recipe.head_lr != 1 else ""
    return f"`{recipe.formulation}`{faster}"


def row(experiment: Experiment) -> tuple[str, ...]:
    """One experiment as the cells of its row."""
    base = experiment.recipes[0]
    formulations = ", ".join(map(ending, experiment.recipes))
    return (
        f"`{experiment.name}`",
        base.data,
        base.model,
        training(base),
        f"{formulations} x {experiment.seeds}",
        searched(experiment),
    )


def table() -> str:
    """All experiments as Markdown."""
    rows = [COLUMNS, ("---",) * len(COLUMNS), *map(row, EXPERIMENTS.values())]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in rows)


if __name__ == "__main__":
    print(table(), end="")
