"""Tiny data of every kind, easy enough to be learned in seconds."""

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import cv2
import numpy as np

TOPICS = {
    "weather, today": ["rain", "sun", "storm", "cloud", "wind"],
    'the "bank"': ["money", "account", "loan", "card", "balance"],
    "7": ["goal", "match", "team", "score", "player"],
}


def write_csv(path: Path, header: Iterable[str], rows: Iterable[Iterable[Any]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
    return path


def sentences(path: Path, per_class: int = 40) -> Path:
    """Three topics; their names have commas, quotes and digits."""
    draw = np.random.default_rng(0)
    rows = []
    for topic, words in TOPICS.items():
        for number in range(per_class):
            chosen = " and the ".join(draw.choice(words, 3))
            rows.append([f"tell me about {chosen} number {number}", topic])
    return write_csv(path, ["sentence", "topic"], rows)


def table(path: Path, per_class: int = 60) -> Path:
    """Two numbers of very different size and one word; the labels are numbers."""
    draw = np.random.default_rng(1)
    rows = []
    for label, (x, colour) in enumerate([(0.0, "red"), (4.0, "blue"), (8.0, "red")]):
        for _ in range(per_class):
            size = 1.7e9 + 1e3 * (x + draw.normal())
            rows.append([x + draw.normal() / 2, size, colour, 10 * label])
    return write_csv(path, ["length", "size", "colour", "label"], rows)


def pictures(folder: Path, per_class: int = 30) -> Path:
    """Red, green and blue noise in three folders."""
    draw = np.random.default_rng(2)
    for k, name in enumerate(["blue, dark", "green", "red"]):
        (folder / name).mkdir(parents=True)
        for number in range(per_class):
            image = draw.integers(0, 90, (18, 20, 3), dtype=np.uint8)
            image[:, :, k] += 120
            cv2.imwrite(str(folder / name / f"{number}.png"), image)
    return folder


def clouds(path: Path, per_class: int = 600) -> Path:
    """Three overlapping clouds of points, so that no model can always be right."""
    draw = np.random.default_rng(3)
    rows = []
    for label, centre in enumerate([(0.0, 0.0), (2.0, 0.0), (0.0, 2.0)]):
        rows += [[*(centre + draw.normal(size=2)), "abc"[label]] for _ in range(per_class)]
    return write_csv(path, ["x", "y", "label"], rows)


def crowd(path: Path, per_class: int = 400) -> Path:
    """Three clouds, and between them points labelled "other" that belong to none of them."""
    draw = np.random.default_rng(4)
    rows = []
    for label, centre in {"a": (-4, 0), "b": (4, 0), "c": (0, 6), "other": (0, 1)}.items():
        rows += [[*(np.array(centre) + draw.normal(size=2)), label] for _ in range(per_class)]
    return write_csv(path, ["x", "y", "label"], rows)


def rare(path: Path) -> Path:
    """Seven classes on a ring as in Shuttle: three of 97 %, two of some 0.2 % and two of 0.6 %."""
    draw = np.random.default_rng(5)
    counts = [4000, 900, 300, 32, 32, 11, 11]
    rows = []
    for label, count in enumerate(counts):
        angle = 2 * np.pi * label / len(counts)
        centre = 4 * np.array([np.cos(angle), np.sin(angle)])
        rows += [[*(centre + draw.normal(size=2)), f"k{label}"] for _ in range(count)]
    return write_csv(path, ["x", "y", "label"], rows)
