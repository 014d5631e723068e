"""Where else training is written down: TensorBoard, MLflow, Weights & Biases, a file beside this for each.

A logger is a file with a function `opened` and an extra of the same name, and a word in `LOGGERS`. None of
them is imported before it is asked for.
"""

from ova.errors import pick, require

LOGGERS = ("tensorboard", "mlflow", "wandb")


def installed(name: str) -> str:
    """The name of a logger, if there is one and its extra is installed."""
    pick(dict.fromkeys(LOGGERS), name, "logger")
    require(name)
    return name
