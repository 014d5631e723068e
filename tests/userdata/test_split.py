"""The split of the user's rows: by lot, groups together, and what is held out is like what comes."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import made_data
from ova.errors import BadInput
from ova.predictions import NONE
from ova.userdata.gather import Gathered, gather
from ova.userdata.request import Request
from ova.userdata.split import HELD, notes_on, split

ALL = list(HELD)


@settings(max_examples=60, deadline=None)
@given(
    groups=st.lists(st.integers(0, 60), min_size=1, max_size=300),
    seed=st.integers(0, 99),
    held=st.sampled_from([ALL, ALL[:2]]),
)
def test_a_split_is_a_split(groups: list[int], seed: int, held: list[str]) -> None:
    """Groups whole in training, one row of each elsewhere, as many as the shares say."""
    count = len(set(groups))
    try:
        parts = split(groups, seed, held)
    except BadInput:
        assert count < 6
        return
    assert list(parts) == ["train", *held]
    of = {name: [groups[row] for row in rows] for name, rows in parts.items()}
    assert sorted(g for name in held for g in of[name]) == sorted({*groups} - {*of["train"]})
    assert Counter(of["train"]) == {g: groups.count(g) for g in {*of["train"]}}
    for name in held:
        assert len(of[name]) == round(HELD[name][0] * count)
        assert parts[name] == sorted(parts[name])


def test_a_part_has_a_largest_size() -> None:
    parts = split(range(300_000), 0, ALL)
    assert {name: len(rows) for name, rows in parts.items()} == {
        "train": 250_000,
        "validation": 10_000,
        "calibration": 20_000,
        "test": 20_000,
    }


def test_every_row_has_the_same_chance_for_every_part() -> None:
    """200 rows in pairs, 500 seeds: also the row that stands for its pair is drawn evenly."""
    times = {name: np.zeros(200) for name in ["train", *ALL]}
    for seed in range(500):
        for name, rows in split([row // 2 for row in range(200)], seed, ALL).items():
            times[name][rows] += 1
    for name, share in {"train": 0.6, "validation": 0.05, "calibration": 0.075}.items():
        spread = (500 * share * (1 - share)) ** 0.5
        assert abs(times[name] - 500 * share).max() < 4.5 * spread
        assert times[name].mean() == pytest.approx(500 * share)


def test_a_rare_class_is_met_among_held_out_rows_as_often_as_it_will_be_met() -> None:
    """Classes of two rows: given that one is held out, the other is trained in 60 of 99 cases.

    A split in proportion would train it nearly always, and a class that is moved always.
    """
    lost = total = 0
    for seed in range(300):
        parts = split(range(100), seed, ALL)
        classes = {row // 2 for row in parts["train"]}
        lost += sum(row // 2 not in classes for row in parts["calibration"])
        total += len(parts["calibration"])
    expected = 39 / 99
    assert lost / total == pytest.approx(
        expected, abs=4 * (expected * (1 - expected) / total) ** 0.5
    )


def table(path: Path, rows: list[list[object]], **more: object) -> Gathered:
    made_data.write_csv(path, ["x", "sender", "label"], rows)
    return gather(Request(data=path, **more))  # type: ignore[arg-type]


def inputs(gathered: Gathered) -> dict[str, list[float]]:
    task = gathered.task
    sets = {"train": task.train, "validation": task.validation}
    sets |= {name: make() for name, make in task.evaluations.items()}
    return {name: part.x[:, 0].tolist() for name, part in sets.items()}  # type: ignore[attr-defined]


def test_copies_are_trained_on_as_they_are_and_held_out_once(tmp_path: Path) -> None:
    rows: list[list[object]] = [[i // 5, "s", "ab"[i % 2]] for i in range(500)]
    gathered = table(tmp_path / "x.csv", rows, drop=("sender",))
    found = inputs(gathered)
    assert {name: len(x) for name, x in found.items()} == {
        "train": 300,
        "validation": 10,
        "calibration": 15,
        "test": 15,
    }
    assert len({x for part in found.values() for x in part}) == 100
    assert Counter(Counter(found["train"]).values()) == {5: 60}
    assert "400 rows repeat an earlier input; copies were kept in one part, and one" in str(
        gathered.notes
    )
    assert any("100 inputs have more than one label" in note for note in gathered.notes)


def test_texts_of_the_same_words_are_copies(tmp_path: Path) -> None:
    """The network reads neither capitals nor spaces, so it is right about all of them or none."""
    said = [f"{what} number {i}" for i in range(100) for what in ("Parcel", "parcel ", " PARCEL  ")]
    rows: list[list[object]] = [[text, "ab"[k // 3 % 2]] for k, text in enumerate(said)]
    made_data.write_csv(tmp_path / "x.csv", ["text", "label"], rows)
    gathered = gather(Request(data=tmp_path / "x.csv", text="text"))
    found = inputs(gathered)
    assert [len(found[name]) for name in ("train", *ALL)] == [180, 10, 15, 15]
    assert "200 rows repeat an earlier input" in str(gathered.notes)


def test_a_group_stays_together_is_no_input_and_counts_as_one(tmp_path: Path) -> None:
    rows: list[list[object]] = [[i + 0.5, f"s{i // 4}", "ab"[i % 2]] for i in range(400)]
    gathered = table(tmp_path / "x.csv", rows, group="sender")
    assert gathered.task.shape == (1,)
    found = inputs(gathered)
    assert [len(found[name]) for name in ("train", *ALL)] == [240, 10, 15, 15]
    senders = {name: {int(x) // 4 for x in part} for name, part in found.items()}
    assert len(senders["calibration"]) == 15
    assert sum(map(len, senders.values())) == len(set.union(*senders.values())) == 100
    assert any("400 rows are 100 groups; the rows of a group" in note for note in gathered.notes)
    assert gathered.task.sources["--group"] == "sender"
    plain = table(tmp_path / "x.csv", rows, drop=("sender",)).task.sources
    assert plain["split"] == "by lot, each input once"  # folders of the old split are refused


def test_rows_that_neither_repeat_nor_contradict_need_no_word() -> None:
    assert notes_on([(key, key, "x") for key in (b"a", b"b", b"c")]) == []


def test_an_input_of_two_groups_is_said_and_groups_decide(tmp_path: Path) -> None:
    rows: list[list[object]] = [[i // 2 % 50, f"s{i}", "ab"[i % 2]] for i in range(200)]
    gathered = table(tmp_path / "x.csv", rows, group="sender")
    assert any("50 inputs are in more than one group" in note for note in gathered.notes)
    assert len(inputs(gathered)["calibration"]) == 30


def test_a_group_of_images_is_a_part_of_their_names(tmp_path: Path) -> None:
    folder = made_data.pictures(tmp_path / "colours", 40)
    for number, file in enumerate(sorted(folder.rglob("*.png"))):
        file.rename(file.with_name(f"thing{number % 40 // 4:02d}_{number}.png"))
    gathered = gather(Request(data=folder, group=r"thing\d+"))  # ten things, in all three classes
    assert len(gathered.task.train) == 12 * 5  # of ten: one, two and two are held out
    assert {len(make()) for make in gathered.task.evaluations.values()} == {2}
    assert any("120 rows are 10 groups" in note for note in gathered.notes)
    with pytest.raises(BadInput, match=r"120 of 120 rows cannot be used \(row 1: no group"):
        gather(Request(data=folder, group=r"photo\d+"))
    with pytest.raises(BadInput, match=r"--group is a regular expression .* which '\(' is not"):
        gather(Request(data=folder, group="("))


def test_rows_without_a_group_and_a_column_that_is_not_there_are_named(tmp_path: Path) -> None:
    rows: list[list[object]] = [[i, "" if i == 3 else i, "ab"[i % 2]] for i in range(60)]
    with pytest.raises(BadInput, match=r"1 of 60 rows cannot be used \(row 4: no group\)"):
        table(tmp_path / "x.csv", rows, group="sender")
    with pytest.raises(BadInput, match=r"no column 'form' \(--group names it\)"):
        table(tmp_path / "x.csv", rows, group="form")
    assert len(table(tmp_path / "x.csv", rows, group="sender", skip_bad=True).task.train) == 35


def strange(gathered: Gathered) -> list[float]:
    """The examples of none: a third chooses the score, the others are reported."""
    found = inputs(gathered)
    chooses, told = found["validation/outside"], found["ood/outside"]
    assert len(chooses) == (len(chooses) + len(told)) // 3
    return sorted([*chooses, *told])


def test_outside_examples_count_once_too(tmp_path: Path) -> None:
    rows: list[list[object]] = [[i, f"s{i}", "ab"[i % 2]] for i in range(60)]
    copies = [[1000 + i // 3, f"s{i // 30}"] for i in range(90)]
    outside = made_data.write_csv(tmp_path / "far.csv", ["x", "sender"], copies)
    gathered = table(tmp_path / "x.csv", rows, drop=("sender",), outside=outside)
    assert strange(gathered) == [1000.0 + i for i in range(30)]
    assert any("90 rows are 30 different inputs, which count once" in n for n in gathered.notes)
    gathered = table(tmp_path / "x.csv", rows, group="sender", outside=outside)
    assert len(strange(gathered)) == 3
    assert any("90 rows are 3 groups" in note for note in gathered.notes)
    bare = made_data.write_csv(tmp_path / "bare.csv", ["x"], [row[:1] for row in copies])
    gathered = table(tmp_path / "x.csv", rows, group="sender", outside=bare)
    assert len(strange(gathered)) == 30
    assert any("has no column 'sender': its inputs are taken" in note for note in gathered.notes)


def test_the_lot_decides_whether_a_single_row_is_trained_on(tmp_path: Path) -> None:
    """Held out it is of none of the classes, and the model has no place for its class."""
    rows: list[list[object]] = [[i, "s", "ab"[i % 2]] for i in range(99)] + [[0.5, "s", "rare"]]
    seen = Counter()  # type: Counter[str]
    for seed in range(60):
        gathered = table(tmp_path / "x.csv", rows, drop=("sender",), seed=seed)
        task = gathered.task
        (place,) = (name for name, x in inputs(gathered).items() if 0.5 in x)
        seen[place] += 1
        assert task.classes == (("a", "b", "rare") if place == "train" else ("a", "b"))
        said = any(
            "1 classes have no row among those to train on, so the model cannot know them: their "
            "1 held-out rows count as none of the classes" in note
            for note in gathered.notes
        )
        assert said == (place != "train")
        if place != "train":
            held = task.validation if place == "validation" else task.evaluations[place]()
            at = held.x[:, 0].tolist().index(0.5)  # type: ignore[attr-defined]
            assert held.y[at] == NONE
    assert seen["train"] == pytest.approx(36, abs=15)
    assert {"validation", "calibration", "ood/none"} <= {*seen}  # of the test rows those of none


def test_classes_that_are_all_rare_cannot_be_trained(tmp_path: Path) -> None:
    rows: list[list[object]] = [[i, "s", "a"] for i in range(39)] + [[0.5, "s", "rare"]]
    held_out = next(seed for seed in range(99) if 39 not in split(range(40), seed, ALL)["train"])
    with pytest.raises(BadInput, match="two classes are needed, but the rows to train on have 1"):
        table(tmp_path / "x.csv", rows, drop=("sender",), seed=held_out)
