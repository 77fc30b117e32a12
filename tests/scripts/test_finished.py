"""Checkpoints are removed when a run is finished, and nothing is trained again because of it."""

import dataclasses
import json

import pytest
import torch

from bpe_dropout import InputError
from scripts import average as stage
from scripts.finished import restore_average, restore_training
from scripts.machine import weights_of
from scripts.runs import Run, plan_run

PLAN = plan_run(Run.parse("iwslt15.en-zh.bpe-dropout.base.seed3"))


@pytest.fixture
def folder(tmp_path):
    names = [f"checkpoint_1_{number}.pt" for number in (1, 2)]
    for value, name in enumerate([*names, "checkpoint_last.pt", "checkpoint_best.pt"]):
        torch.save({"model": {"w": torch.tensor([float(value)])}, "last_optimizer_state": {}}, tmp_path / name)
    record = {"checkpoints": names, "updates": PLAN.updates, "stopped": "at the limit"}
    (tmp_path / "training.json").write_text(json.dumps(record))
    return tmp_path


def average(folder, monkeypatch, *more: str) -> None:
    arguments = ["average", str(folder / "training.json"), "--output", str(folder / "average.pt"), *more]
    monkeypatch.setattr("sys.argv", arguments)
    stage.main()
    assert torch.load(folder / "average.pt")["model"]["w"].tolist() == [0.5]


def test_checkpoints_are_kept_if_asked_for(folder, monkeypatch):
    average(folder, monkeypatch, "--keep-checkpoints")
    assert len([*folder.glob("checkpoint*.pt")]) == 4
    assert not restore_training(PLAN, folder, folder / "training.json")


def test_a_finished_run_is_never_done_again(folder, monkeypatch):
    average(folder, monkeypatch)
    assert [*folder.glob("checkpoint*.pt")] == []
    record = (folder / "training.json").read_text()
    for name in ("training.json", "average.pt"):  # as Snakemake does before it makes them again
        (folder / name).unlink()
    assert restore_training(PLAN, folder, folder / "training.json")
    assert json.loads((folder / "training.json").read_text()) == json.loads(record)
    average(folder, monkeypatch)
    longer = dataclasses.replace(PLAN, updates=PLAN.updates + 1)
    with pytest.raises(InputError, match=r"finished, and its checkpoints were removed. To train it for"):
        restore_training(longer, folder, folder / "training.json")


@pytest.mark.parametrize("killed_at", ["scripts.finished.write_json", "scripts.finished.remove_checkpoints"])
def test_no_checkpoint_is_removed_before_all_is_kept(folder, monkeypatch, killed_at):
    def die(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(killed_at, die)
        with pytest.raises(KeyboardInterrupt):
            average(folder, monkeypatch)
    assert len([*folder.glob("checkpoint*.pt")]) == 4
    (folder / "average.pt").unlink()
    average(folder, monkeypatch)
    assert [*folder.glob("checkpoint*.pt")] == []


def test_an_average_of_another_training_is_not_taken(folder, monkeypatch):
    average(folder, monkeypatch)
    (folder / "training.json").write_text(json.dumps({"checkpoints": ["checkpoint_1_3.pt"]}))
    assert not restore_average(folder, folder / "training.json", folder / "average.pt")


def test_two_files_of_the_same_weights_are_one_model(tmp_path):
    weights = {"a": torch.arange(6.0), "b": torch.ones(2, 3)}
    for name, model, place in (("one", weights, "/here"), ("other", weights, "/there"), ("third", None, "/here")):
        model = model or {**weights, "b": torch.zeros(2, 3)}
        meter = torch.tensor(float(len(name)))
        torch.save({"model": model, "cfg": {"save_dir": place}, "meters": [meter]}, tmp_path / f"{name}.pt")
    one, other, third = (weights_of(tmp_path / f"{name}.pt") for name in ("one", "other", "third"))
    assert one == other != third
