"""The model folder: JSON and safetensors only, with a hash for every part, checked when it is read."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ova.errors import BadInput
from ova.files import read_object, reading, sha256, write_json, write_text
from ova.modelfolder import confidence, each_class
from ova.modelfolder.evidence import PARTS, Evidence, forward_of, read_evidence, write_evidence
from ova.modelfolder.held import Held
from ova.modelfolder.names import CALIBRATION, FEATURES, HELD, MANIFEST, MODEL, ROWS, WEIGHTS
from ova.models import model as model_called
from ova.models.configuration import read_config
from ova.models.pretrained import FROZEN, empty_encoder, is_folder
from ova.nn.formulation import Formulation
from ova.posthoc.calibration import Top
from ova.posthoc.per_class import Thresholds
from ova.posthoc.threshold import Threshold
from ova.training import checkpoint
from ova.training.classifier import Classifier, assemble, together
from ova.training.together import answering
from ova.userdata.gather import Gathered
from ova.userdata.kind import Preparation
from ova.userdata.kinds import preparation
from ova.userdata.texts import TOKENIZER, Tokens

FORMAT, VERSION = "ova model", 1
# What `model.json` may name; a model has some of them.
PARTS_OF_ANY = (WEIGHTS, MANIFEST, TOKENIZER, CALIBRATION, HELD, FEATURES, ROWS, *PARTS)


@dataclass(frozen=True)
class Model:
    """A trained classifier with all that belongs to it."""

    kind: str
    classes: tuple[str, ...]
    net: Classifier
    form: Formulation
    preparation: Preparation
    evidence: Evidence  # the score that decides
    threshold: Threshold | Thresholds  # of that score; of max p it is the uncalibrated confidence
    calibration: Top | str  # or the reason why there is none
    kept: Held | None  # of the rows that carry the promise; earlier versions kept nothing
    facts: Mapping[str, Any]

    @cached_property
    def shown(self) -> Threshold | Thresholds:
        """The threshold on the scale of the calibrated confidences, where these decide."""
        return confidence.shown(self.threshold, self.calibration, self.form, self.evidence.name)

    @torch.inference_mode()
    def outputs(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The features and logits of encoded inputs."""
        f, z = forward_of(self.net, self.preparation.prepare)(x)
        return f.float(), z.float()


@dataclass(frozen=True)
class Decides:
    """When a model answers, and how sure it says it is."""

    evidence: Evidence
    threshold: Threshold | Thresholds
    calibration: Top | str
    kept: Held


def save(  # noqa: PLR0913  every part of a model
    folder: Path,
    gathered: Gathered,
    evidence: Evidence,
    threshold: Threshold | Thresholds,
    calibration: Top | str,
    *,
    kept: Held,
    manifest: Any,
) -> None:
    """Write all parts of a model that was trained beside its weights."""
    recipe, prepared = gathered.recipe, gathered.preparation
    encoder = is_folder(recipe.model)
    about = {
        "kind": gathered.kind,
        "classes": list(gathered.task.classes),
        "formulation": recipe.formulation,
        "members": recipe.members,
        "model": "encoder" if encoder else recipe.model,
        "encoder": read_config(Path(recipe.model.partition(":")[2])) if encoder else None,
        "frozen": recipe.model.startswith(FROZEN),
        "standardised": recipe.model.startswith(FROZEN),
        "shape": list(gathered.task.shape),
        "preparation": prepared.to_json(),
    }
    decides = Decides(evidence, threshold, calibration, kept)
    write_parts(folder, about, decides, prepared, manifest)


def write_parts(
    folder: Path,
    about: Mapping[str, Any],
    decides: Decides,
    prepared: Preparation,
    manifest: Any,
    more: Iterable[str] = (),
) -> None:
    """Write all parts beside the weights and `more`, last `model.json`, which names the hashes of all.

    A folder is whole or no model.
    """
    evidence = decides.evidence
    (folder / MODEL).unlink(missing_ok=True)
    write_json(folder / MANIFEST, manifest)
    write_json(folder / CALIBRATION, confidence.to_json(decides.calibration))
    write_json(folder / HELD, decides.kept.to_json(), indent=0)
    parts = [WEIGHTS, MANIFEST, CALIBRATION, HELD, *write_evidence(folder, evidence), *more]
    if isinstance(prepared, Tokens):
        write_text(folder / TOKENIZER, prepared.tokenizer.to_str(pretty=False))
        parts.append(TOKENIZER)
    content = {
        "format": FORMAT,
        "version": VERSION,
        **about,
        "score": {"name": evidence.name, "why": evidence.why},
        "threshold": decides.threshold.to_json(),
    }
    seal(folder, content, parts)


def seal(folder: Path, content: Mapping[str, Any], parts: Iterable[str]) -> None:
    """Write `model.json`, with the hashes of all parts and of itself: from now on the folder is a model."""
    hashes = {name: sha256(folder / name) for name in parts}
    whole = {**content, "parts": hashes}
    write_json(folder / MODEL, {**whole, "sha256": digest(whole)})


def digest(content: Mapping[str, Any]) -> str:
    """The SHA-256 of JSON content, whatever its layout."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def check_weights(folder: Path) -> None:
    """Refuse weights that are not those of which `model.json` has the hash, where there is one."""
    try:
        wanted = read_object(folder / MODEL)["parts"][WEIGHTS]
    except (OSError, BadInput, KeyError, TypeError):
        return  # nothing is said about them
    check_part(folder / WEIGHTS, wanted, f"; move {folder} away to train again")


def check_part(path: Path, wanted: str, hint: str = "") -> None:
    """Refuse a file that is not the one of which `model.json` has the hash."""
    if (found := sha256(path)) != wanted:
        raise BadInput(
            f"{path} was changed after training: its SHA-256 is {found}, {MODEL} says {wanted}{hint}"
        )


def facts_of(folder: Path) -> dict[str, Any]:
    """`model.json`, checked together with all parts that it names."""
    path = folder / MODEL
    if not path.is_file():
        raise BadInput(f"{folder} is not a model: there is no {MODEL} in it")
    content = read_object(path)
    if content.get("format") != FORMAT:
        raise BadInput(f"{path} was not written by `ova train`")
    if content.get("version") != VERSION:
        raise BadInput(f"{path} has version {content.get('version')}; this ova reads {VERSION}")
    said = content.pop("sha256", None)
    if said != digest(content):
        raise BadInput(
            f"{path} was changed after training: its SHA-256 is {digest(content)}, it says {said}. "
            "Train again, or put the original back; --threshold of `ova predict` needs no edit"
        )
    with reading(path, "a model of `ova train`"):
        parts = {str(name): str(wanted) for name, wanted in content["parts"].items()}
    for name, wanted in parts.items():
        if name not in PARTS_OF_ANY:
            raise BadInput(f"{path} names a part that no model has: {name!r}")
        if not (folder / name).is_file():
            raise BadInput(f"{folder}: {name} is missing")
        check_part(folder / name, wanted)
    return content


def empty(folder: Path, facts: Mapping[str, Any]) -> Classifier:
    """A network as `model.json` describes it, without its weights."""
    shape = tuple(facts["shape"])
    if facts["encoder"] is not None:
        standard = bool(facts.get("standardised"))  # earlier versions did not
        backbone = empty_encoder(facts["encoder"], facts["frozen"], folder / MODEL, standard)
    elif is_folder(facts["model"]):
        raise BadInput(f"{folder / MODEL} names a model outside the folder: {facts['model']!r}")
    else:
        backbone = model_called(facts["model"])(shape, 0.0)
    return assemble(backbone, facts["formulation"], len(facts["classes"]), images=len(shape) == 3)


def load(folder: Path | str) -> Model:
    """The model in a folder; nothing in it can run code."""
    folder = Path(folder)
    facts = facts_of(folder)
    with reading(folder / MODEL, "a model of `ova train`"):
        classes = tuple(facts["classes"])
        members = int(facts.get("members", 1))  # earlier versions trained one network
        form = answering(facts["formulation"], members)
        torch.manual_seed(0)
        nets = [empty(folder, facts) for _ in range(members)]
        net = together(nets, facts["formulation"]) if members > 1 else nets[0]
        prepared = preparation(facts["kind"], facts["preparation"], folder)
        threshold = each_class.from_json(facts["threshold"], len(classes))
        calibration: Top | str = "an earlier version of ova trained the model"
        if CALIBRATION in facts["parts"]:
            calibration = confidence.read(folder / CALIBRATION, form)
        evidence = read_evidence(folder, facts)
        kept = None  # of earlier versions
        if HELD in facts["parts"]:
            kept = Held.from_json(read_object(folder / HELD), len(classes))
    checkpoint.restore(net, checkpoint.load(folder / WEIGHTS)[0], folder / WEIGHTS)
    model = Model(
        kind=facts["kind"],
        classes=classes,
        net=net.eval(),
        form=form,
        preparation=prepared,
        evidence=evidence,
        threshold=threshold,
        calibration=calibration,
        kept=kept,
        facts=facts,
    )
    with reading(
        folder / MODEL, "a model of `ova train`"
    ):  # hashes may be right, and parts not fit
        model.outputs(prepared.example(1, torch.Generator().manual_seed(0)))
    return model
