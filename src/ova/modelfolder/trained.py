"""A trained model as an object: answers, probabilities, measurements, export, and how it shows itself."""

import weakref
from collections.abc import Sequence
from html import escape
from pathlib import Path
from shutil import copytree, rmtree
from typing import TYPE_CHECKING, Any

from ova.errors import BadInput, mendable, pick, require, without
from ova.metrics.measured import Evaluation
from ova.modelfolder import outputs
from ova.modelfolder.asking import Said, ask, probabilities
from ova.modelfolder.folder import facts_of
from ova.modelfolder.folder import load as read_folder
from ova.modelfolder.judging import judge
from ova.modelfolder.names import RUN, SCHEME
from ova.posthoc.per_class import Thresholds
from ova.posthoc.threshold import Promise, Threshold
from ova.predictions.columns import Array
from ova.predictions.listing import Table, html_table
from ova.userdata.given import in_words_of_python

if TYPE_CHECKING:
    from ova.modelfolder.review.review import Review

PROMISE = ("accuracy", "coverage", "leak", "certainty")
MORE = ("label", "score", "test", "outside", "skip_bad")  # of `extend`, besides


class TrainedModel:
    """What `ova.train` and `ova.load` give."""

    def __init__(self, folder: Path, notes: Sequence[str] = (), held: Path | None = None) -> None:
        self.model = read_folder(folder)
        self.folder = folder
        self.notes = tuple(notes)  # what the training found about its data
        if held is not None:  # a temporary folder goes with the object
            weakref.finalize(self, rmtree, held, ignore_errors=True)

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes, in the order of the probabilities."""
        return self.model.classes

    @property
    def threshold(self) -> Threshold | Thresholds:
        """When the model answers, and what is promised of that."""
        return self.model.shown

    @property
    def score(self) -> str:
        """The score that the threshold is compared with; the confidence is `max_p`."""
        return self.model.evidence.name

    @property
    def run_folder(self) -> Path:
        """The run behind the model, which pictures are drawn from."""
        return self.folder / RUN

    def predict(self, inputs: Any, threshold: float | None = None) -> Table[Said]:
        """What the model says about each input, in order: a row each, `label` None where it refuses.

        Inputs are a list of texts, a data frame with the columns of the training data, rows of
        numbers in their order, image files, or a `Path`. Another threshold is one of confidences; the promise is
        then void.
        """
        if threshold is not None and not 0 <= threshold <= 1:
            raise BadInput(f"threshold {threshold} is no confidence; give a number from 0 to 1")
        with in_words_of_python({}):
            return ask(self.model, inputs, threshold)

    def predict_proba(self, inputs: Any) -> Array:
        """The probability of each class, in the order of `classes`; one-vs-all, they may all be small.

        Uncalibrated. A row that cannot be used is NaN.
        """
        with in_words_of_python({}):
            return probabilities(self.model, inputs)

    def evaluate(
        self, test: Any, labels: Any = None, *, outside: Any = None, label: str = ""
    ) -> Evaluation:
        """Accuracy, calibration and refusals on rows with labels, and on rows of none of the classes."""
        with in_words_of_python({}):
            return judge(self.model, self.folder, (test, labels), outside, label)

    def review(
        self,
        log: str | Path,
        out: str | Path,
        below: float = 0.5,
        images: str | Path | None = None,
    ) -> "Review":
        """Group what was refused, or answered doubtfully, as a page and a sheet in the folder `out`.

        `log` is a file of inputs, or of the predictions that `ova predict` or a server wrote of them.
        What is filled in in `out`/review.csv is for `extend`. `images` is a folder with the images
        that a server's log has by name or by hash.
        """
        from ova.modelfolder.review.review import carry_out

        with in_words_of_python({}):
            kept = None if images is None else Path(images)
            return carry_out(self.model, self.folder, [str(log)], Path(out), below, kept)

    def extend(  # noqa: PLR0913  what `ova extend` asks for most
        self,
        labelled: str | Path | None = None,
        *,
        out: str | Path,
        data: str | Path | None = None,
        new: Sequence[str] = (),
        remove: Sequence[str] = (),
        merge: Sequence[str] = (),
        refit: bool | None = None,
        **more: Any,
    ) -> "TrainedModel":
        """A model with other classes in the folder `out`: what `ova extend` does.

        `data` is the file or folder that the model was trained from. `more` are accuracy, coverage,
        leak and certainty of the promise, and label, score, test, outside and skip_bad.
        """
        from ova.modelfolder.extend.carry import Wish, carry_out, lines

        promise = {name: more.pop(name) for name in PROMISE if name in more}
        for name in more:
            pick(dict.fromkeys(MORE), name, "option of extend")
        more |= {name: Path(more[name]) for name in ("test", "outside") if name in more}
        wish = Wish(
            out=Path(out),
            labelled=None if labelled is None else Path(labelled),
            data=None if data is None else Path(data),
            new=tuple(new),
            remove=tuple(remove),
            merge=tuple(merge),
            wanted=Promise(**promise),
            refit=refit,
            **more,
        )
        with in_words_of_python({}):
            made = carry_out(self.folder, wish)
        return TrainedModel(wish.out, [*lines(made)])

    def export(self, path: str | Path) -> Path:
        """Write the model as one ONNX file, which is kept only if it agrees with this one."""
        place = Path(path)
        require("onnx")
        if place.suffix.lower() != ".onnx":
            raise BadInput(f"{place}: a model is exported to a file that ends with .onnx")
        outputs.check_files({"path": place}, [])
        from ova.modelfolder.export import export

        export(self.model, place)
        return place

    def save(self, folder: str | Path) -> Path:
        """Copy the model with its report to a folder that is not there yet, or empty."""
        place = Path(folder)
        outputs.check_folder("folder", place)
        if place.exists() and any(place.iterdir()):
            raise BadInput(f"{place} is not empty; name a folder that is not there yet")
        facts_of(self.folder)  # it is still the model that was loaded
        beside = place.with_name(f".{place.name}.part")
        rmtree(beside, ignore_errors=True)
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            copytree(self.folder, beside)
            beside.replace(place)
        except OSError as error:
            raise mendable(error) from error
        finally:
            rmtree(beside, ignore_errors=True)
        return place

    def __repr__(self) -> str:
        about = f"{self.model.kind}, {len(self.classes)} classes, {self.model.facts['formulation']}"
        return f"ova model ({about}): by {self.score}, {next(self.threshold.lines(self.classes))}"

    def _repr_html_(self) -> str:
        calibration = self.model.calibration
        facts = {
            "classes": ", ".join(self.classes),
            "formulation": self.model.facts["formulation"],
            "score that decides": self.score,
            "because": self.model.evidence.why,
            "promise": "; ".join(self.threshold.lines(self.classes)),
            "confidences": f"uncalibrated: {calibration}"
            if isinstance(calibration, str)
            else "calibrated",
            "notes": "; ".join(self.notes),
        }
        rows = [[name, value] for name, value in facts.items() if value]
        head = f"ova model: {self.model.kind}, {len(self.classes)} classes"
        return f"<p>{escape(head)}</p>{html_table(['', ''], rows)}"


def load(folder: str | Path) -> TrainedModel:
    """The model in a folder of `ova train` or `ova.train`; nothing in it can run code.

    "hf://OWNER/NAME", with "@REVISION" behind it if need be, is one that `ova push` uploaded.

    >>> import ova
    >>> from sklearn.datasets import load_iris
    >>> trained = ova.train(*load_iris(return_X_y=True), accuracy=0.8, epochs=5)
    >>> model = load(trained.folder)
    >>> model.classes
    ('0', '1', '2')
    """
    if not isinstance(folder, str | Path):
        raise BadInput(f"a model is loaded from the path of its folder, not from {folder!r}")
    if isinstance(folder, str) and folder.startswith(SCHEME):
        try:
            from ova.modelfolder.hub import fetch

            return TrainedModel(fetch(folder))
        except ModuleNotFoundError as error:
            raise without(error) from None
    return TrainedModel(Path(folder))
