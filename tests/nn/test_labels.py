"""Models of transformers that are given labels: our loss, also for none of the classes, exactly."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

import ova
from made_transformers import TOKENS, TRANSFORMERS, K, bert, vit
from ova.nn.convert import convert
from ova.nn.modules import IGNORED, Head, Loss

EVERY = pytest.mark.parametrize(("make", "x", "layer"), TRANSFORMERS.values(), ids=TRANSFORMERS)
Y = torch.tensor([0, 1, -1, 3, IGNORED, -1])


@EVERY
@pytest.mark.parametrize("as_dict", [True, False])
def test_labels_given_to_the_model_give_our_loss(
    make: Any, x: dict[str, Tensor], layer: str, as_dict: bool
) -> None:
    model, _ = convert(make(), "dm")  # an earlier conversion is forgotten
    model, _ = convert(model, "ova")
    model.eval()
    outputs = model(**x, labels=Y, return_dict=as_dict)
    assert torch.allclose(outputs[0], Loss("ova")(outputs[1], Y))
    assert torch.equal(outputs[1], model(**x)[0])
    assert isinstance(model.get_submodule(layer), Head)
    if as_dict:
        assert torch.equal(outputs.loss, outputs[0])
        assert list(outputs)[:2] == ["loss", "logits"]
        assert type(outputs) is type(model(**x))
    assert not hasattr(outputs, "loss") or model(**x).loss is None


def test_labels_may_come_by_place() -> None:
    model: Any = convert(vit(), "ova").model.eval()
    x = TRANSFORMERS["vit"][1]["pixel_values"]
    assert torch.equal(model(x, Y).loss, model(x, labels=Y).loss)


def test_labels_of_a_call_that_failed_are_forgotten() -> None:
    model: Any = convert(bert(), "ova").model.eval()
    with pytest.raises(Exception, match="input_ids"):
        model(labels=Y)
    assert model(**TOKENS).loss is None


@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")  # the tracer looks at it
def test_a_compiled_model_has_our_loss_too() -> None:
    model: Any = convert(bert(), "ova").model.eval()
    torch.compiler.reset()
    step = torch.compile(model, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(step(**TOKENS, labels=Y).loss, model(**TOKENS, labels=Y).loss)


class Plain(nn.Module):
    """As many models are: no room for `num_items_in_batch`."""

    def __init__(self) -> None:
        super().__init__()
        inner: Any = bert()
        self.config, self.bert, self.classifier = inner.config, inner.bert, inner.classifier

    def forward(self, input_ids: Tensor, labels: Tensor | None = None) -> dict[str, Tensor]:
        z = self.classifier(self.bert(input_ids).pooler_output)
        loss = {} if labels is None else {"loss": nn.functional.cross_entropy(z, labels)}
        return {**loss, "logits": z}


class Rows(Dataset):
    """Sentences of two words, named as a Trainer wants them; labels of every kind."""

    def __init__(self, labels: list[int]) -> None:
        self.labels = labels

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, i: int) -> dict[str, Tensor]:
        return {"input_ids": torch.tensor([3 + i, 10]), "labels": torch.tensor(self.labels[i])}


def trainer(model: nn.Module, rows: Rows, folder: Path, **more: Any) -> Any:
    from transformers import Trainer, TrainingArguments

    options = {"compute_loss_func": more.pop("compute_loss_func", None)}
    arguments = TrainingArguments(
        output_dir=str(folder), report_to=[], save_strategy="no", use_cpu=True, logging_steps=1,
        disable_tqdm=True, dataloader_pin_memory=False, max_grad_norm=0.0, **more,
    )  # fmt: skip
    made = (torch.optim.SGD(model.parameters(), lr=more["learning_rate"]), None)
    return Trainer(
        model=model, args=arguments, train_dataset=rows, eval_dataset=rows, optimizers=made, **options
    )  # fmt: skip


@pytest.mark.parametrize("given", [True, False], ids=["compute_loss_func", "labels only"])
@pytest.mark.parametrize("make", [bert, Plain])
@pytest.mark.parametrize("formulation", ["softmax", "ova", "ova-ball"])
def test_accumulated_gradients_are_those_of_one_batch(
    formulation: str, make: Any, given: bool, tmp_path: Path
) -> None:
    """Batches of one, two or three rows that count: a mean of means would be another number."""
    torch.manual_seed(0)
    rows = Rows([0, IGNORED, IGNORED, 1, -1, 2, 3, IGNORED])
    model, loss = convert(make(), formulation)
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    x = torch.stack([rows[i]["input_ids"] for i in range(len(rows))])
    y = torch.tensor(rows.labels)
    model(input_ids=x)  # the start
    once = copy.deepcopy(model)
    value = loss(once(input_ids=x), y)
    value.backward()
    own = trainer(
        model, rows, tmp_path, max_steps=1, per_device_train_batch_size=3, learning_rate=1.0,
        gradient_accumulation_steps=3, lr_scheduler_type="constant",
        compute_loss_func=loss if given else None,
    )  # fmt: skip
    own.train()
    for (name, moved), start in zip(model.named_parameters(), once.parameters(), strict=True):
        slope = 0 if start.grad is None else start.grad
        torch.testing.assert_close(moved, start - slope, rtol=1e-4, atol=1e-5, msg=name)
    logged = [row["loss"] for row in own.state.log_history if "loss" in row]
    assert logged == pytest.approx([value.item()], rel=1e-3)


def test_the_trainer_of_transformers_evaluates_and_predicts(tmp_path: Path) -> None:
    torch.manual_seed(0)
    rows = Rows([i % (K + 1) - 1 for i in range(30)])
    model, loss = convert(bert(), "ova-ball")
    own = trainer(
        model, rows, tmp_path, max_steps=20, per_device_train_batch_size=10, learning_rate=1e-3
    )
    model(input_ids=torch.stack([rows[i]["input_ids"] for i in range(30)]))  # the start
    before = own.evaluate()["eval_loss"]
    own.train()
    said = own.predict(rows)
    assert isinstance(said.predictions, np.ndarray)
    assert said.predictions.shape == (30, K)
    after = own.evaluate()["eval_loss"]
    assert after < before
    mean = float(loss(torch.tensor(said.predictions), torch.tensor(rows.labels)))
    assert after == pytest.approx(mean, rel=1e-4)


@EVERY
@pytest.mark.parametrize("formulation", ["ova", "ova-ball"])
def test_a_converted_model_is_saved_and_comes_back(
    make: Any, x: dict[str, Tensor], layer: str, formulation: str, tmp_path: Path
) -> None:
    model, _ = ova.convert(make(), formulation, classes=3)
    model(**x)
    model.save_pretrained(tmp_path)
    assert model.config.ova == {"formulation": formulation, "layer": layer}
    again, loss = ova.from_pretrained(tmp_path)
    assert type(again) is type(model)
    assert loss.formulation == again.get_submodule(layer).formulation == formulation
    again.train()(**x)
    for (name, one), two in zip(model.named_parameters(), again.parameters(), strict=True):
        assert torch.equal(one, two), name
    model.load_state_dict(again.state_dict())  # with the statistics of its norms
    model.eval(), again.eval()
    y = torch.tensor([0, 1, 2, -1, IGNORED, 0])
    assert torch.equal(again(**x, labels=y).loss, model(**x, labels=y).loss)


def test_a_model_that_was_not_converted_is_named(tmp_path: Path) -> None:
    bert().save_pretrained(tmp_path)  # type: ignore[operator]
    with pytest.raises(ova.BadInput, match="has no head of ours"):
        ova.from_pretrained(tmp_path)
