"""The error that is the user's to mend: input, a name that is not there, an extra that is not installed."""

import errno
from collections.abc import Mapping
from difflib import get_close_matches
from importlib.util import find_spec
from typing import TypeVar

T = TypeVar("T")


class BadInput(ValueError):
    """Input that cannot be used. The message says what was wrong and what would have worked.

    The command line prints it and exits with 2.

    >>> from ova import fit_sets
    >>> fit_sets(([[0.5, 0.5]], [0]), coverage=95)
    Traceback (most recent call last):
    ...
    ova.errors.BadInput: coverage must lie strictly between 0 and 1, not 95
    """


def pick(table: Mapping[str, T], name: str, kind: str) -> T:
    """The entry called `name`; an unknown name says what is near and what there is.

    >>> pick({"softmax": 1, "ova": 2}, "ova", "formulation")
    2
    >>> pick({"softmax": 1, "ova": 2}, "sofmax", "formulation")
    Traceback (most recent call last):
    ...
    ova.errors.BadInput: no formulation called 'sofmax'; did you mean 'softmax'? There is: softmax, ova
    """
    if name in table:
        return table[name]
    near = get_close_matches(name, table, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    raise BadInput(f"no {kind} called {name!r}{hint} There is: {', '.join(table)}")


# What `pip install 'ova[...]'` adds, by the module that is imported. Whoever needs `train` needs
# `report` too, because every training ends with a page.
EXTRAS: dict[str, dict[str, str]] = {
    "report": {"altair": "Altair", "vl_convert": "vl-convert"},
    "train": {
        "PIL": "Pillow",
        "cv2": "OpenCV",
        "datasets": "datasets",
        "huggingface_hub": "huggingface-hub",
        "lightning_fabric": "Lightning Fabric",
        "optuna": "Optuna",
        "sqlalchemy": "SQLAlchemy",
        "tokenizers": "tokenizers",
        "transformers": "transformers",
    },
    "onnx": {"onnx": "ONNX", "onnxruntime": "ONNX Runtime", "onnxscript": "ONNX Script"},
    "serve": {
        "fastapi": "FastAPI",
        "prometheus_client": "prometheus-client",
        "python_multipart": "python-multipart",
        "uvicorn": "uvicorn",
    },
    "tensorboard": {"tensorboard": "TensorBoard"},
    "mlflow": {"mlflow": "MLflow"},
    "wandb": {"wandb": "Weights & Biases"},
}


def without(error: ModuleNotFoundError) -> Exception:
    """What to raise for a module that is not there: the extra that brings it, or the error itself.

    >>> without(ModuleNotFoundError(name="cv2"))
    BadInput("this needs OpenCV: pip install 'ova[train]'")
    """
    module = (error.name or "").partition(".")[0]
    for extra, modules in EXTRAS.items():
        if module in modules:
            return BadInput(f"this needs {modules[module]}: pip install 'ova[{extra}]'")
    return error


# What to say after the system's own words.
ADVICE = {
    errno.ENOSPC: "make room, then the same command goes on",
    errno.EDQUOT: "make room, then the same command goes on",
    errno.EFBIG: "raise the limit of how long a file may be, then the same command goes on",
    errno.EACCES: "name a place where you may read and write",
    errno.EPERM: "name a place where you may read and write",
    errno.EROFS: "name a place that can be written to",
    errno.ENOTDIR: "a part of that path is a file, not a folder",
    errno.EISDIR: "name a file, not a folder",
    errno.ENAMETOOLONG: "give it a shorter name",
}
# What PyTorch says in a RuntimeError, and the system where a library finds no room.
NO_MEMORY = ("allocate memory", "out of memory", "failed to map segment")
# What the libraries say under which processes talk to each other when one of them is gone.
PEER_GONE = ("gloo/transport", "NCCL error", "c10d::TCPStore", "DistNetworkError")


def mendable(error: Exception) -> Exception:
    """What to raise for an error of the machine: a sentence if it is the user's to mend, or itself.

    >>> mendable(PermissionError(13, "Permission denied", "runs/toy"))
    BadInput('runs/toy: Permission denied; name a place where you may read and write')
    """
    if isinstance(error, ModuleNotFoundError):
        return without(error)
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        advice = ADVICE.get(error.errno or 0)
        return BadInput(f"{where}{error.strerror or error}" + (f"; {advice}" if advice else ""))
    if isinstance(error, UnicodeEncodeError):  # Arrow cannot open such a file
        return BadInput(f"{error.object!r} is not UTF-8; rename it")
    if isinstance(error, MemoryError) or any(words in str(error) for words in NO_MEMORY):
        return BadInput(f"there is not enough memory for this: {error or 'Python has none left'}")
    if any(words in f"{type(error).__name__}: {error}" for words in PEER_GONE):
        return BadInput(
            "another process of this run is gone (killed, out of memory, its machine lost); see what it "
            "said last. The same command on all machines goes on from the last checkpoint"
        )
    return error


def require(extra: str) -> None:
    """Refuse to begin what would end without a module of an extra."""
    for module in EXTRAS[extra]:
        if find_spec(module) is None:
            raise without(ModuleNotFoundError(name=module))
