"""All of CIFAR-10-C, 950,000 images, against the core-seconds of the reference implementation.

    python benchmarks/corruptions.py                   # the whole set
    python benchmarks/corruptions.py --images 19000    # a share of it, scaled up and saying so

Core-seconds are processor time over all threads, without the first call (which compiles, or reads
compiled code from disk). The reference's were measured on a machine of the same kind.
"""

import argparse
import os
import resource
import time
from pathlib import Path

import numpy as np

from ova.corruptions import CORRUPTIONS, SEVERITIES, corrupt
from ova.data.frost import find_textures
from ova.files import cores

WHOLE = 10_000  # images of the test set
REFERENCE = {
    "glass_blur": 695,
    "zoom_blur": 168,
    "snow": 165,
    "motion_blur": 77,
    "elastic_transform": 42,
    "shot_noise": 29,
    "fog": 24,
    "brightness": 23,
    "saturate": 22,
    "defocus_blur": 18,
    "spatter": 17,
    "frost": 11,
}
REFERENCE_TOTAL = 1329
REST = (REFERENCE_TOTAL - sum(REFERENCE.values())) / (len(CORRUPTIONS) - len(REFERENCE))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--images", type=int, default=len(CORRUPTIONS) * len(SEVERITIES) * WHOLE)
    parser.add_argument("--data-dir", type=Path, default=os.environ.get("OVA_DATA"))
    parser.add_argument("--workers", type=int, default=cores())
    options = parser.parse_args()
    count = max(1, min(WHOLE, options.images // (len(CORRUPTIONS) * len(SEVERITIES))))
    clean, origin = images(options.data_dir, count)
    textures = find_textures(options.data_dir)
    scale = WHOLE / count
    note = "" if scale == 1 else f", scaled up {scale:g} times to all {WHOLE:,}"
    print(f"{origin}: {count:,} images x 19 types x 5 severities{note}")
    print(f"{options.workers} threads, {textures.source} frost textures\n")
    print(f"{'type':<18}{'images/s':>10}{'core-s':>9}{'reference':>11}{'ratio':>8}")
    total, wall = 0.0, 0.0
    for name in CORRUPTIONS:
        corrupt(clean[:1], name, 1, textures=textures)
        began, busy = time.perf_counter(), time.process_time()
        for severity in SEVERITIES:
            corrupt(clean, name, severity, textures=textures, workers=options.workers)
        seconds = time.perf_counter() - began
        core = (time.process_time() - busy) * scale
        total, wall = total + core, wall + seconds * scale
        speed = len(SEVERITIES) * count / seconds
        known = f"{REFERENCE[name]:>11}" if name in REFERENCE else f"{'under 8':>11}"
        ratio = REFERENCE.get(name, REST) / core
        mark = " " if name in REFERENCE else "~"
        print(f"{name:<18}{speed:>10,.0f}{core:>9.2f}{known}{mark}{ratio:>7.1f}", flush=True)
    speed = len(CORRUPTIONS) * len(SEVERITIES) * WHOLE / wall
    print(
        f"{'all':<18}{speed:>10,.0f}{total:>9.2f}{REFERENCE_TOTAL:>11} {REFERENCE_TOTAL / total:>7.1f}"
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\n{wall:.0f} s on the clock, at most {peak:,.0f} MB of memory")
    print(
        f"~ the reference names no number for these; {REST:.1f} is what is left of its total for each"
    )


def images(data_dir: Path | None, count: int) -> tuple[np.ndarray, str]:
    """The first test images of CIFAR-10, or smooth random ones where it is not on this machine."""
    from ova.data import DATASETS
    from ova.data.task import InMemory
    from ova.errors import BadInput

    try:
        test = DATASETS["cifar10"](data_dir).evaluations["test"]()
        assert isinstance(test, InMemory)
        clean = test.x[:count].permute(0, 2, 3, 1).contiguous().numpy()
        return clean, "CIFAR-10"
    except BadInput:
        random = np.random.default_rng(0)
        coarse = random.integers(0, 256, (count, 8, 8, 3), np.uint8)
        return coarse.repeat(4, axis=1).repeat(4, axis=2), "random images (CIFAR-10 is not here)"


if __name__ == "__main__":
    main()
