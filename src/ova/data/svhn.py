"""SVHN, cropped street-view digits: here the test set, which belongs to none of CIFAR's classes."""

import io
from collections.abc import Sequence

import numpy as np

from ova.data.hub import Hub
from ova.data.images import Expected, Images, read_parquet, read_table
from ova.data.sources import Blob, Layout, Origin
from ova.errors import BadInput
from ova.files import reading

# No digest: the copies in use (official, re-encoded, re-cropped) differ in single values.
EXPECTED = {"train": Expected(73_257, 10), "test": Expected(26_032, 10)}


def zero_for_ten(images: Images) -> Images:
    """The official files label the digit 0 as 10."""
    return Images(images.x, np.where(images.y == 10, 0, images.y))


def read_mat(blobs: Sequence[Blob]) -> Images:
    """The official MATLAB file: X is 32 x 32 x 3 x N, y is N x 1."""
    from scipy.io import loadmat

    (blob,) = blobs
    with reading(blob.name, "a MATLAB file with X and y"):
        mat = loadmat(io.BytesIO(blob.data), variable_names=("X", "y"))
        x, y = np.asarray(mat["X"]), np.asarray(mat["y"]).reshape(-1).astype(np.int64)
    if x.ndim != 4 or x.dtype != np.uint8:
        raise BadInput(f"{blob.name}: X must be 32 x 32 x 3 x N bytes, here {x.shape} {x.dtype}")
    x = np.ascontiguousarray(x.transpose(3, 2, 0, 1))
    return zero_for_ten(Images(x, y))


def origin(split: str) -> Origin[Images]:
    """Where the split can come from."""
    parquet = read_parquet("image", "label")
    return Origin(
        name=f"SVHN {split}",
        folders=("svhn", "SVHN", "."),
        layouts=(
            Layout(
                (f"cropped_digits/{split}-*.parquet",), lambda blobs: zero_for_ten(parquet(blobs))
            ),
            Layout((f"{split}_32x32.mat",), read_mat),
        ),
        hub=Hub("ufldl-stanford/svhn", "cropped_digits", split),
        read_hub=lambda name, table: zero_for_ten(read_table(name, table, "image", "label")),
        how=f"download {split}_32x32.mat (format 2, cropped digits) from the SVHN page",
    )
