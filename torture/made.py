"""What the attacks begin from: small sound files of every kind that a command reads."""

import json
import shutil
from pathlib import Path
from typing import Any

import made_data

TESTS = Path(__file__).parent.parent / "tests"
ROWS = 24


def inputs(folder: Path) -> int:
    """Data of the user: a table, texts, images."""
    made_data.table(folder / "table.csv", 30)
    made_data.sentences(folder / "texts.csv", 20)
    made_data.pictures(folder / "images", 10)
    return 0


def predictions(folder: Path) -> int:
    """Predictions in every format, of a test set, held-out rows and an outside set."""
    import numpy as np

    from ova.predictions import Predictions, write

    draw = np.random.default_rng(0)
    for name, outside in {"test": False, "held": False, "far": True}.items():
        p = draw.dirichlet(np.ones(3), ROWS).round(6)
        p[:, -1] = 1 - p[:, :-1].sum(1)
        y = draw.integers(0, 3, ROWS)
        columns = {"id": np.arange(ROWS), "target": y, **{f"p_{k}": p[:, k] for k in range(3)}}
        for ending in TABLES:
            write_table(folder / f"{name}{ending}", columns)
        if not outside:
            ours = Predictions.from_probs(p, y, normalised=True, keep_probs=True)
            write(folder / f"{name}-ours.parquet", ours)
    return 0


def outputs(folder: Path) -> int:
    """Features and logits in every format, of training, test and outside rows."""
    import numpy as np
    from safetensors.numpy import save_file

    from made_outputs import network

    made = network()
    sets = {"train": made.inside(80, 1), "inside": made.inside(ROWS, 2), "out": made.outside(ROWS)}
    for name, rows in sets.items():
        arrays: dict[str, Any] = {"features": rows.features, "logits": rows.logits}
        arrays["target"] = rows.target
        np.savez(folder / f"{name}-dump.npz", **arrays)
        write_table(folder / f"{name}-dump.parquet", {k: list(v) for k, v in arrays.items()})
        save_file(arrays, folder / f"{name}-dump.safetensors")
        for part, ours in {"feature": "features", "logits": "logits", "labels": "target"}.items():
            np.save(folder / f"{name}_{part}.npy", arrays[ours])
    return 0


def write_table(path: Path, columns: dict[str, Any]) -> Path:
    """Columns in the format of the file's ending."""
    return TABLES[path.suffix](path, list(columns.items()))


def _csv(path: Path, columns: list[tuple[str, Any]]) -> Path:
    rows = zip(*(column for _, column in columns), strict=True)
    return made_data.write_csv(path, [name for name, _ in columns], rows)


def _parquet(path: Path, columns: list[tuple[str, Any]]) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrays = [pa.array(column) for _, column in columns]
    pq.write_table(pa.Table.from_arrays(arrays, [name for name, _ in columns]), path)
    return path


def _npz(path: Path, columns: list[tuple[str, Any]]) -> Path:
    """Names may come twice, which numpy would not write."""
    import io
    import warnings
    import zipfile

    import numpy as np

    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, column in columns:
            file = io.BytesIO()
            np.save(file, np.asarray(column))
            archive.writestr(f"{name}.npy", file.getvalue())
    return path


TABLES = {".csv": _csv, ".parquet": _parquet, ".npz": _npz}


def cifar(folder: Path) -> int:
    """CIFAR-10 as its authors pickle it, with very few images."""
    import pickle

    import numpy as np

    (batches := folder / "data" / "cifar-10-batches-py").mkdir(parents=True)
    held = {b"data": np.zeros((4, 3072), np.uint8), b"labels": [0, 1, 2, 3]}
    for name in [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]:
        (batches / name).write_bytes(pickle.dumps(held, protocol=2))
    return 0


def collection(folder: Path) -> int:
    """Runs that are kept together in three files."""
    from ova.report.runs import read
    from ova.training.run_folder import write_collection

    (folder / "kept").mkdir()
    write_collection(folder / "kept", read([folder / "runs"]))
    return 0


def recipe(folder: Path) -> int:
    """A recipe of seconds."""
    from dataclasses import asdict, replace

    from ova.experiments import EXPERIMENTS

    base = replace(EXPERIMENTS["toy"].recipes[0], epochs=1, steps=5)
    (folder / "recipe.json").write_text(json.dumps(asdict(base)))
    return 0


def encoder(folder: Path) -> int:
    """An encoder of transformers as a folder."""
    from made_encoders import bert

    (folder / "encoder").mkdir()
    bert(folder / "encoder")
    return 0


def model(folder: Path) -> int:
    """A trained model of a table, and rows for it."""
    shutil.copytree(TESTS / "modelfolder/version_0_1/model", folder / "model")
    rows = (TESTS / "modelfolder/version_0_1/rows.csv").read_text().splitlines()[:9]
    (folder / "rows.csv").write_text("\n".join(rows) + "\n")
    return 0


def tiny_search() -> None:
    """Give `ova tune` an experiment that takes seconds and no data, with no other worker to wait for."""
    from dataclasses import replace

    from ova.experiments import EXPERIMENTS
    from ova.training import search
    from ova.training.recipe import Experiment, Range

    search.CLAIM = 1.0
    base = replace(EXPERIMENTS["toy"].recipes[0], experiment="tiny", epochs=2, steps=9)
    EXPERIMENTS["tiny"] = Experiment(
        "tiny", "a search of seconds", (base,), search={"lr": Range(1e-3, 1e-1, log=True)}, trials=3
    )
