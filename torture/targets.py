"""Every kind of file that a command reads, what spoils it, and the command line."""

import io
import json
import os
import pickle
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from torture import made
from torture import mutations as change
from torture.mutations import ABOUT_DUMPS, ABOUT_P, ABOUT_TARGETS, EITHER, REFUSE

# Writes another file in place of the one in a folder; gives what it did, and what must follow.
Spoil = Callable[[Random, Path], tuple[str, str]]


@dataclass(frozen=True)
class Target:
    """A file, what spoils it, and the command that reads it."""

    line: str
    file: str
    spoils: Sequence[Spoil]
    needs: Sequence[str] = ()  # other files and folders of the command
    weight: int = 4


def by_bytes(draw: Random, path: Path) -> tuple[str, str]:
    """Any damage; an empty file, and a binary one whose end is gone, must be refused."""
    how, data = change.damaged(draw, path.read_bytes())
    whole = path.read_bytes()
    path.write_bytes(data)
    ends = path.suffix in (".npz", ".parquet", ".safetensors") and how == "cut" and data != whole
    return how, REFUSE if ends else EITHER


def by_json(draw: Random, path: Path) -> tuple[str, str]:
    """JSON that says something else."""
    how, data, must = change.damaged_json(draw, path.read_bytes())
    path.write_bytes(data)
    return how, must


def loosely(spoil: Spoil) -> Spoil:
    """The same, where nobody says what must follow."""

    def spoiled(draw: Random, path: Path) -> tuple[str, str]:
        return spoil(draw, path)[0], EITHER

    return spoiled


def by_place(draw: Random, path: Path) -> tuple[str, str]:
    """Something else in the place of the file."""
    how = draw.choice(["a folder", "nothing", "a link to itself", "a pipe", "a link to nowhere"])
    path.unlink()
    if how == "a folder":
        path.mkdir()
    elif how == "a pipe":
        os.mkfifo(path)
    elif how.startswith("a link"):
        path.symlink_to(path.name if how == "a link to itself" else "nowhere")
    return how, EITHER


def by_table(changes: dict[str, change.Change], read: Callable[[Path], change.Columns]) -> Spoil:
    """A table with a column or a cell that says something else."""

    def spoil(draw: Random, path: Path) -> tuple[str, str]:
        how = draw.choice(list(changes))
        must, changed = changes[how]
        columns = changed(draw, change.some(draw, read(path.with_suffix(".npz"))))
        made.TABLES[path.suffix](path, columns)
        return how, must

    return spoil


def columns_of(path: Path) -> change.Columns:
    """The columns of a sound .npz, which lies beside the same in every other format."""
    import numpy as np

    with np.load(path, allow_pickle=False) as held:
        return [(name, held[name].tolist()) for name in held.files]


def by_members(name: str, reads: bool = True) -> Spoil:
    """An .npz whose array of that name is no array of numbers, or not as long as it says."""

    def spoil(draw: Random, path: Path) -> tuple[str, str]:
        import numpy as np

        form = np.lib.format
        sound = io.BytesIO()
        np.save(sound, np.zeros(made.ROWS))
        shapes = [(10**13,), (-1,), (2**63,), (made.ROWS, 10**12), (10**6,), ()]
        objects = io.BytesIO()
        np.save(objects, np.array([{}, []], object), allow_pickle=True)
        cases: list[tuple[str, Any]] = [
            *((f"shape {shape}", (shape, "<f8")) for shape in shapes),
            *((f"type {kind}", ((made.ROWS,), kind)) for kind in ("|O", "<c16", "<U9", "|V8")),
            ("objects", objects.getvalue()),
            ("a pickle", pickle.dumps([1.0] * made.ROWS)),
            ("noise", draw.randbytes(300)),
            ("nothing", b""),
            ("twice", sound.getvalue()),
        ]
        how, held = draw.choice(cases)
        if isinstance(held, tuple):
            header = io.BytesIO()
            told = {"descr": held[1], "fortran_order": draw.random() < 0.5, "shape": held[0]}
            form.write_array_header_1_0(header, told)
            content = header.getvalue() + b"\0" * 8 * made.ROWS
        else:
            content = held
        with zipfile.ZipFile(path) as archive:
            members = {n: archive.read(n) for n in archive.namelist()}
        kinds = [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
        with zipfile.ZipFile(path, "w", draw.choice(kinds)) as archive:
            for member, data in members.items():
                if member != f"{name}.npy" or how == "twice":
                    archive.writestr(member, data)
            archive.writestr(f"{name}.npy", content)
        return f"{name} is {how}", REFUSE if reads else EITHER

    return spoil


def bomb(_: Random, path: Path) -> tuple[str, str]:
    """An array that nobody asks for, of a quarter of a gigabyte in a quarter of a megabyte."""
    with (
        zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive,
        archive.open("note.npy", "w", force_zip64=True) as file,
    ):
        for _times in range(256):
            file.write(bytes(1 << 20))
    return "a bomb", EITHER


def by_picture(draw: Random, path: Path) -> tuple[str, str]:
    """A picture of more pixels than its bytes, or of hardly any."""
    sides = [(20_000, 20_000), (60_000, 60_000), (2**31 - 1, 1), (1, 1), (0, 0), (16_000, 3)]
    width, height = draw.choice(sides)
    path.write_bytes(change.png(width, height))
    return f"{width} x {height} pixels", EITHER


def by_pickle(draw: Random, path: Path) -> tuple[str, str]:
    """A pickle that would run a command, or unpacks to gigabytes."""
    import numpy as np

    class Call:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.mkdir, (str(path.parent / "run-by-a-pickle"),)

    nested: list[Any] = []
    for _ in range(60):
        nested = [nested, nested]
    held = {b"data": np.zeros((4, 3072), np.uint8), b"labels": [0, 1, 2, 3]}
    made_of = {
        "a call": lambda: {**held, b"more": Call()},
        "nested lists": lambda: {**held, b"labels": nested},
        "other keys": lambda: {b"data": held[b"data"]},
        "a wide array": lambda: {**held, b"data": np.zeros((4, 9), np.uint8)},
        "objects": lambda: {**held, b"labels": [None, {}, "x", 1.5]},
    }
    how = draw.choice(list(made_of))
    path.write_bytes(pickle.dumps(made_of[how](), protocol=draw.choice([2, 4])))
    return how, EITHER


def signed(spoil: Spoil) -> Spoil:
    """Damage inside a model whose hashes are then made right, so that the content is really read."""

    def spoiled(draw: Random, path: Path) -> tuple[str, str]:
        from ova.files import sha256
        from ova.modelfolder.folder import digest

        how, _ = spoil(draw, path)
        whole = path.parent / "model.json"
        try:
            content = json.loads(whole.read_bytes())
            content.pop("sha256", None)
            parts = content["parts"]
            parts.update({n: sha256(path.parent / n) for n in parts if (path.parent / n).is_file()})
            whole.write_text(json.dumps({**content, "sha256": digest(content)}))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            pass  # it is no longer JSON
        return how, EITHER

    return spoiled


def by_experiment(draw: Random, path: Path) -> tuple[str, str]:
    """A recipe that asks to be written elsewhere."""
    recipe = json.loads(path.read_text())
    recipe["experiment"] = draw.choice(["/x", "../../x", "..", "a/../../x", "", "a\0b", "x/../.."])
    path.write_text(json.dumps(recipe))
    return f"experiment {recipe['experiment']!r}", REFUSE


def targets() -> list[Target]:
    """Every kind of file with the commands that read it."""
    found: list[Target] = []
    p = by_table(ABOUT_P, columns_of)
    y = by_table(ABOUT_TARGETS, columns_of)
    classes = by_table({"four classes": (REFUSE, change.other_classes)}, columns_of)
    for ending in made.TABLES:
        test, held, far = (f"{name}{ending}" for name in ("test", "held", "far"))
        more = [by_members("target"), by_members("p_1"), bomb] if ending == ".npz" else []
        alone = [by_bytes, by_bytes, p, p, y, by_place, *more]
        beside = ("test.npz", "held.npz", "far.npz", test, held, far)
        found += [
            Target(f"evaluate {test}", test, alone, beside, 12),
            Target(f"evaluate {test} --ood {far}", far, [by_bytes, p, classes], beside, 6),
            Target(f"calibrate {test} --fit {held}", held, [by_bytes, p, y, classes], beside, 6),
            Target(f"calibrate {held} --fit {test} --out x.csv", held, [p, y], beside, 3),
        ]
    ours = "test-ours.parquet"
    found.append(Target(f"evaluate {ours}", ours, [by_bytes], (), 8))
    dumps = by_table(ABOUT_DUMPS, columns_of)
    score = "score train-dump{0} inside-dump{0} --outside out-dump{0} --bootstrap 0"
    for ending in (".npz", ".parquet", ".safetensors"):
        needs = [f"{n}-dump{e}" for n in ("train", "inside", "out") for e in {ending, ".npz"}]
        more = [by_bytes, by_bytes] if ending == ".safetensors" else [by_bytes, dumps, dumps]
        more += [by_members("features"), by_members("logits"), bomb] if ending == ".npz" else []
        for name in ("train", "inside"):
            found.append(Target(score.format(ending), f"{name}-dump{ending}", more, needs, 5))
    arrays = [
        f"{n}_{a}.npy" for n in ("train", "inside", "out") for a in ("feature", "logits", "labels")
    ]
    line = "score train_feature.npy inside_feature.npy --outside out_feature.npy --bootstrap 0"
    found += [Target(line, f"inside_{a}.npy", [by_bytes], arrays) for a in ("feature", "labels")]
    return found + of_models() + of_data() + of_runs()


def of_models() -> list[Target]:
    """Models and what they are asked about."""
    predict = "predict {0} {1} --out x.csv"
    table = predict.format("model", "rows.csv")
    found = [Target(table, "rows.csv", [by_bytes, by_bytes, by_place], ["model"], 12)]
    for folder, rows in {"model": "rows.csv", "texts": "lines.txt", "pictures": "images"}.items():
        line = predict.format(folder, rows)
        inside = {
            "model.json": [by_bytes, by_json, signed(by_json), signed(by_json)],
            "calibration.json": [by_bytes, signed(by_json), signed(by_bytes)],
            "manifest.json": [signed(by_json)],
            "weights.safetensors": [by_bytes, signed(by_bytes), signed(by_bytes)],
        }
        if folder != "model":  # which an earlier version trained
            inside["held.json"] = [by_bytes, signed(by_json), signed(by_json)]
        if folder == "texts":
            inside["tokenizer.json"] = [signed(by_json), signed(by_bytes)]
        for name, spoils in inside.items():
            found.append(Target(line, f"{folder}/{name}", spoils, [folder, rows], 3))
    found.append(Target(predict.format("texts", "lines.txt"), "lines.txt", [by_bytes], ["texts"]))
    picture = [by_bytes, by_bytes, by_picture, by_place]
    image = "images/red/0.png"
    line = predict.format("pictures", "images")
    found.append(Target(line, image, picture, ["images", "pictures"], 8))
    return found


def of_data() -> list[Target]:
    """Data to train on, to corrupt, or to look at."""
    quick = "--set epochs=1 --out out"
    text = f"train texts.csv --text sentence --label topic {quick}"
    picture, image = [by_bytes, by_bytes, by_picture], "images/red/0.png"
    pickled = "data/cifar-10-batches-py/data_batch_2"
    encoded = f"{text} --encoder encoder"
    ways: dict[str, Sequence[Spoil]] = {
        "config.json": [by_bytes, loosely(by_json), loosely(by_json)],
        "tokenizer.json": [by_bytes, loosely(by_json)],
        "model.safetensors": [by_bytes],
    }
    encoder = [
        Target(encoded, f"encoder/{name}", spoils, ["texts.csv", "encoder"], 1)
        for name, spoils in ways.items()
    ]
    return [
        Target(f"train table.csv {quick}", "table.csv", [by_bytes], (), 3),
        Target(text, "texts.csv", [by_bytes], (), 2),
        Target(f"train images {quick}", image, picture, ["images"], 1),
        Target(
            "corrupt images --out out --types contrast --severities 1", image, picture, ["images"]
        ),
        Target("corrupt --preview a.png --out x.png", "a.png", picture, (), 2),
        Target("data --data-dir data", pickled, [by_bytes, by_pickle, by_pickle], ["data"], 3),
        *encoder,
    ]


def of_runs() -> list[Target]:
    """What runs leave, which reports and other runs read."""
    report = "report {0} --output out.html"
    line = "run --recipe recipe.json --out out"
    run = "runs/small"
    json_ = [by_bytes, by_json, by_json]
    found = [
        Target(line, "recipe.json", [by_bytes, by_json, by_json, by_experiment], (), 6),
        *(
            Target(report.format("runs"), f"{run}/{name}", json_, ["runs"], 2)
            for name in ("recipe.json", "measurements.jsonl", "curves.json", "log.jsonl")
        ),
        Target(report.format("runs"), f"{run}/manifest.json", json_, ["runs"], 1),
        Target(report.format("runs"), f"{run}/calibration.json", json_, ["runs"], 1),
    ]
    kept = [f"kept/{name}" for name in ("runs.jsonl", "measurements.jsonl", "curves.jsonl")]
    return found + [Target(report.format("kept"), name, json_, ["kept"], 2) for name in kept]
