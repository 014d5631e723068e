"""Images: the centre square, at one size, in colour, as uint8; normalised by numbers."""

import hashlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ova.data.augmentation import CropFlip, normalise
from ova.data.decoding import decode
from ova.errors import BadInput
from ova.files import cores, read_object
from ova.userdata.kind import Encoded, Examined, Kind, whole
from ova.userdata.request import Request
from ova.userdata.rows import FILE, Frame

LARGEST, SMALLEST = 64, 16  # pixels a side, unless an encoder or the user wants others
LEAST, MOST = 8, 1 << 12  # pixels a side that may be asked for
THUMBNAIL = 96  # pixels a side on a page, at most
SAMPLE = 200  # images whose size is looked at


@dataclass(frozen=True)
class Sent:
    """An image that came as bytes, in the place of the path of a file."""

    name: str
    data: bytes = field(repr=False)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Pixels:
    """RGB squares of `size` pixels a side; (x / 255 - mean) / std per channel."""

    size: int
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    column = FILE

    @property
    def shape(self) -> tuple[int, ...]:
        """Channels, height, width."""
        return (3, self.size, self.size)

    @property
    def takes(self) -> str:
        """Every library resizes in a way of its own, so ours is named."""
        return (
            f"uint8 N x 3 x {self.size} x {self.size}, red first: the image turned as EXIF says, its centre "
            f"square, cv2.resize to {self.size} pixels with INTER_AREA where it is larger and INTER_LINEAR "
            "where it is smaller"
        )

    def encode(self, frame: Frame) -> Encoded:
        """The images; a file that is none is named."""
        files = frame.column(FILE, "the images")
        with ThreadPoolExecutor(min(4, cores())) as pool:
            found = list(pool.map(lambda file: read(file, self.size), files))
        x = np.zeros((len(files), *self.shape), np.uint8)
        bad = dict(frame.bad)
        for row, image in enumerate(found):
            if isinstance(image, str):
                bad.setdefault(row, image)
            else:
                x[row] = image
        return Encoded(torch.from_numpy(x), None, bad)

    def prepare(self, x: Tensor) -> Tensor:
        """Normalised, channels last, which convolutions prefer."""
        return normalise(self.mean, self.std)(x).contiguous(memory_format=torch.channels_last)

    def example(self, count: int, draw: torch.Generator) -> Tensor:
        """Random pixels."""
        return torch.randint(0, 256, (count, *self.shape), generator=draw, dtype=torch.uint8)

    def words(self, _: Tensor, /) -> str:
        """Files have names."""
        return ""

    def picture(self, x: Tensor) -> bytes:
        """What the network sees, small enough for a page."""
        import cv2

        image = np.ascontiguousarray(
            x.numpy().transpose(1, 2, 0)[:, :, ::-1]
        )  # cv2 wants blue first
        if self.size > THUMBNAIL:
            image = cv2.resize(image, (THUMBNAIL, THUMBNAIL), interpolation=cv2.INTER_AREA)
        return bytes(cv2.imencode(".png", image)[1])

    def to_json(self) -> dict[str, Any]:
        """Three numbers and two triples."""
        return {"size": self.size, "mean": list(self.mean), "std": list(self.std)}


def from_json(content: Mapping[str, Any], _: Path) -> Pixels:
    """What `to_json` gave."""
    size = content["size"]
    if not whole(size, 1, MOST):
        raise ValueError(f"images of {size!r} pixels a side")
    return Pixels(size, tuple(content["mean"]), tuple(content["std"]))


def opened(file: str | Sent) -> np.ndarray | str:
    """H x W x 3, or why there is no image."""
    try:
        if isinstance(file, Sent):
            return decode(file.data)
        if not Path(file).is_file():  # a pipe would be waited for without end
            return "not a file"
        return decode(Path(file).read_bytes())
    except BadInput as error:
        return str(error)
    except OSError as error:
        return f"not readable ({error.strerror})"


def read(file: str | Sent, size: int) -> np.ndarray | str:
    """The centre square of an image as 3 x size x size, or why there is none."""
    import cv2

    image = opened(file)
    if isinstance(image, str):
        return image
    h, w = image.shape[:2]
    side = min(h, w)
    top, left = (h - side) // 2, (w - side) // 2
    square = image[top : top + side, left : left + side]
    if side != size:
        how = cv2.INTER_AREA if side > size else cv2.INTER_LINEAR
        # In the order of bytes that was decoded, which needs no copy of a large image.
        square = cv2.resize(square[:, :, ::-1], (size, size), interpolation=how)[:, :, ::-1]
    return square.transpose(2, 0, 1)


def asked_size(size: int) -> int:
    """The size that the user wants, if it is one; 0 where nothing was said."""
    if size and not LEAST <= size <= MOST:
        raise BadInput(f"--size {size}: wanted {LEAST} to {MOST} pixels a side")
    return size


def usual_size(files: Sequence[str]) -> int:
    """The median of the shorter sides of some of the images, within what a small network likes."""
    some = files[:: max(1, len(files) // SAMPLE)]
    sides = [min(image.shape[:2]) for file in some if not isinstance(image := opened(file), str)]
    if not sides:
        why = opened(some[0])
        raise BadInput(f"none of {len(some)} files is an image: {some[0]} is {why}")
    return int(np.clip(np.median(sides), SMALLEST, LARGEST))


def examine(frame: Frame, request: Request) -> Examined:
    """Read all images, at the size that the encoder wants or that most of them have."""
    if request.text:
        raise BadInput(f"--text names a column, but {request.data} is a folder of images")
    files = frame.columns[FILE]
    known = from_encoder(request.encoder) if request.encoder else None
    draft = known or Pixels(asked_size(request.size) or usual_size(files))
    if known and request.size not in (0, known.size):
        raise BadInput(f"--size {request.size}: the encoder takes {known.size} pixels a side")
    encoded = draft.encode(frame)

    def learn(rows: Sequence[int]) -> Pixels:
        if known:
            return known
        x = encoded.x[list(rows)].numpy()
        mean, std = x.mean((0, 2, 3)) / 255, x.std((0, 2, 3)) / 255
        return Pixels(draft.size, tuple(mean.tolist()), tuple(np.maximum(std, 1 / 255).tolist()))

    keys = [hashlib.blake2b(image.tobytes()).digest() for image in encoded.x.numpy()]
    bad = {row: f"{files[row]} is {why}" for row, why in encoded.bad.items()}
    return Examined(bad, keys, learn, lambda _: encoded, augment=CropFlip(flip=request.mirror))


def from_encoder(folder: Path) -> Pixels:
    """Size and normalisation that an encoder was made for."""
    from ova.models.configuration import read_config

    config, path = read_config(folder), folder / "preprocessor_config.json"
    more = read_object(path) if path.is_file() else {}
    try:
        cropped, resized = (side_of(more.get(name) or {}) for name in ("crop_size", "size"))
        size = int(cropped or config.get("image_size") or resized or 224)
        mean, std = more.get("image_mean", [0.5] * 3), more.get("image_std", [0.5] * 3)
        return Pixels(size, tuple(map(float, mean)), tuple(map(float, std)))
    except (ValueError, TypeError, AttributeError) as error:
        raise BadInput(f"{path} does not say size and normalisation: {error}") from None


def side_of(wanted: Any) -> Any:
    """The side of the square that a preprocessor speaks of."""
    return wanted if isinstance(wanted, int) else wanted.get("height", wanted.get("shortest_edge"))


KIND = Kind(
    fits=lambda request: request.data.is_dir(),
    examine=examine,
    load=from_json,
    settings={"model": "resnet20", "optimiser": "adamw", "lr": 3e-3, "weight_decay": 0.05,
              "schedule": "cosine"},
    steps=8_000, epochs=(15, 100), batch=(16, 128), minutes=10.0,
)  # fmt: skip
