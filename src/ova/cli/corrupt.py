"""`ova corrupt`: make a corrupted copy of a data set or of a folder of images."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from ova.cli import options
from ova.cli.console import plain_console
from ova.errors import BadInput, pick
from ova.files import write_beside
from ova.modelfolder import outputs

if TYPE_CHECKING:
    from ova.data.corrupted.record import How

SMALL = 64  # pixels up to which the constants for 32 px images are the nearer ones


def corrupt(
    source: Annotated[
        str | None, Argument(help="A data set (`ova list datasets`) or a folder of images.")
    ] = None,
    out: Annotated[
        Path | None, Option(help="Folder for the result; with --preview, the picture.")
    ] = None,
    preview: Annotated[
        Path | None,
        Option(metavar="IMAGE", help="Only draw all types and severities of one image."),
    ] = None,
    constants: Annotated[
        str, Option(help="cifar (32 px), imagenet (224 px), or auto: by the image size.")
    ] = "auto",
    types: Annotated[
        list[str] | None,
        Option(
            help="Types or subsets: all-19, paper-17, standard-15 (repeat, or separate by commas)."
        ),
    ] = None,
    severities: Annotated[str, Option(help="Severities, for example 1,3,5.")] = "1,2,3,4,5",
    seed: Annotated[int, Option(help="Seed of everything random.")] = 0,
    data_dir: options.DataDir = None,
) -> None:
    """Make the -C version of a data set: up to 19 types of corruption at 5 severities.

    A data set becomes one array per type with the severities stacked, and labels.npy, as CIFAR-10-C
    is published. A folder becomes type/severity/path.png, as ImageNet-C is. The same command goes on
    after an interruption. For example:

        ova corrupt cifar100 --out CIFAR-100-C

        ova corrupt photos/ --out photos-c --types fog,frost --severities 3

        ova corrupt --preview cat.png
    """
    from ova.data.frost import frost_textures

    textures = frost_textures(data_dir)  # as when corrupting on the fly, so that both agree
    if preview is not None:
        draw(preview, out, constants, seed, textures)
        return
    if source is None or out is None:
        raise BadInput("name a SOURCE and an --out folder, or one image with --preview")
    outputs.check_folder("--out", out, [source])
    chosen, levels = chosen_types(types), chosen_severities(severities)

    from ova.data import DATASETS
    from ova.data.corrupted.record import How

    def how(side: int) -> How:
        return How(seed, chosen_constants(constants, side), levels, textures)

    if source in DATASETS:
        from_data_set(source, out, chosen, how, data_dir)
    elif Path(source).is_dir():
        from_folder(Path(source), out, chosen, how)
    else:
        raise BadInput(f"{source!r} is no folder and no data set. There is: {', '.join(DATASETS)}")


def chosen_types(types: list[str] | None) -> list[str]:
    """Names of types, with subsets spelt out, each once.

    >>> chosen_types(["fog,snow", "fog"])
    ['fog', 'snow']
    """
    from ova.corruptions import CORRUPTIONS, SUBSETS

    table = {**{name: (name,) for name in CORRUPTIONS}, **SUBSETS}
    names = [name.strip() for part in types or ["all-19"] for name in part.split(",")]
    return list(dict.fromkeys(n for name in names for n in pick(table, name, "corruption")))


def chosen_severities(text: str) -> tuple[int, ...]:
    """Severities in ascending order, each once.

    >>> chosen_severities("5,1")
    (1, 5)
    """
    from ova.corruptions import SEVERITIES

    parts = [part.strip() for part in text.split(",")]
    if not all(part in map(str, SEVERITIES) for part in parts):
        raise BadInput(f"severities {text!r}; give some of 1,2,3,4,5, separated by commas")
    return tuple(sorted({int(part) for part in parts}))


def chosen_constants(name: str, side: int) -> str:
    """The set of constants of that name, or the one for images with that shorter side.

    >>> chosen_constants("auto", 32), chosen_constants("auto", 375)
    ('cifar', 'imagenet')
    """
    from ova.corruptions.corruption import CONSTANTS

    if name == "auto":
        return "cifar" if side <= SMALL else "imagenet"
    pick({**CONSTANTS, "auto": None}, name, "set of constants")
    return name


def draw(image: Path, out: Path | None, constants: str, seed: int, textures: Any) -> None:
    """Draw the contact sheet of one image."""
    from PIL import Image

    from ova.corruptions.table import check_images
    from ova.data.corrupted.sheet import contact_sheet
    from ova.data.decoding import read_rgb

    path = Path(f"{image.stem}-corruptions.png") if out is None else out
    if path.suffix.lower() not in Image.registered_extensions():
        raise BadInput(f"{path}: the picture needs a name that ends in .png (or .jpg, .webp ...)")
    outputs.check_files({"--out": path}, [image])
    try:
        pixels = read_rgb(image)[None]
    except Exception as error:  # a damaged file can raise nearly anything
        raise BadInput(f"cannot read the image {image}: {error}") from error
    check_images(pixels)
    name = chosen_constants(constants, min(pixels.shape[1:3]))
    sheet = contact_sheet(pixels[0], seed=seed, constants=name, textures=textures)
    with write_beside(path) as beside:
        sheet.save(beside, format=Image.registered_extensions()[path.suffix.lower()])
    typer.echo(f"{path}: 19 corruptions x 5 severities, {name} constants, {textures.source} frost")


def from_data_set(
    source: str, out: Path, types: list[str], how: Any, data_dir: Path | None
) -> None:
    """Write the arrays of a data set's test images."""
    from ova.data import DATASETS
    from ova.data.corrupted.stacks import write_stacks
    from ova.data.task import InMemory

    task = DATASETS[source](data_dir)
    test = task.evaluations["test"]() if len(task.shape) == 3 and task.shape[0] == 3 else None
    if not isinstance(test, InMemory):
        raise BadInput(f"{source} has no small colour images in memory; name a folder of images")
    images = test.x.permute(0, 2, 3, 1).contiguous().numpy()
    settings = how(min(images.shape[1:3]))
    done = write_stacks(images, test.y.numpy(), source, out, types, settings)
    typer.echo(follow(done, out, types, len(images), settings))


def from_folder(root: Path, out: Path, types: list[str], how: Any) -> None:
    """Write the tree of a folder's images, and say which could not be used."""
    from ova.data.corrupted.trees import survey, write_tree

    found = survey(root)
    for name, why in found.problems.items():
        typer.echo(f"skipped {name}: {why}")
    if found.converted:
        typer.echo(
            f"note: {found.converted} images are grey, transparent or not RGB; they become RGB"
        )
    sides = sorted(min(picture.size) for picture in found.pictures)
    settings = how(sides[len(sides) // 2])
    done = write_tree(found, root.resolve().name, out, types, settings)
    skipped = f"; {len(found.problems)} files skipped" if found.problems else ""
    typer.echo(follow(done, out, types, len(found.pictures), settings) + skipped)


def follow(
    done: Iterable[tuple[str, int]], out: Path, types: list[str], images: int, how: "How"
) -> str:
    """Show a bar while the images are made; gives what was made, in a sentence."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as TimeLeft

    name = TextColumn("{task.description:<18}", markup=False)
    columns = (name, BarColumn(), MofNCompleteColumn(), TimeLeft())
    with Progress(*columns, console=plain_console(stderr=True)) as bar:
        task = bar.add_task("corrupting", total=images * len(how.severities) * len(types))
        for kind, count in done:
            bar.update(task, description=kind, advance=count)
    return (
        f"{out}: {len(types)} types of {images} images at severities "
        f"{', '.join(map(str, how.severities))}; {how.constants} constants, seed {how.seed}, "
        f"{how.textures.source} frost textures"
    )
