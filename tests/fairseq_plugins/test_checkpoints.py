"""Checkpoints: loaded safely, saved whole, averaged."""

import argparse
import os
import pickle
import re
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.dataclass.configs import CheckpointConfig
from fairseq.file_io import PathManager
from omegaconf import OmegaConf

from bpe_dropout import InputError, checkpoints
from bpe_dropout.averaging import average, average_states, choose_checkpoints
from bpe_dropout.checkpoints import load_safely
from fairseq_plugins.checkpoints import explain_restoring
from tests.fairseq_plugins.conftest import MODEL, OURS, TRAIN, plugin, run, run_both


@pytest.fixture(scope="module")
def trained(data, tmp_path_factory):
    """Checkpoints of three epochs, and two by update."""
    folder = tmp_path_factory.mktemp("trained")
    run(
        "fairseq-train", data, *OURS, *MODEL, "--max-tokens", "400", "--max-epoch", "3",
        "--save-interval-updates", "25", "--save-dir", folder, "--eval-bleu",
        "--eval-bleu-args", '{"beam": 1, "max_len_b": 5}',
    )  # fmt: skip
    return folder


class Malicious:
    def __init__(self, witness):
        self.witness = witness

    def __reduce__(self):
        return os.system, (f"touch {self.witness}",)


class Sly:
    """Through getattr, which would open a way to everything."""

    def __reduce__(self):
        return getattr, ("text", "upper")


def test_a_malicious_checkpoint_is_refused(trained, data, tmp_path):
    witness = tmp_path / "witness"
    state = load_safely(trained / "checkpoint_last.pt")
    state["extra_state"]["train_iterator"]["shuffle"] = Malicious(witness)
    torch.save(state, tmp_path / "evil.pt")
    # The test can fail: without care the file does what it wants.
    torch.load(tmp_path / "evil.pt", weights_only=False)
    assert witness.exists()
    witness.unlink()

    arguments = [data, *OURS, "--cpu"]
    generate, resume = run_both(
        ("fairseq-generate", *arguments, "--path", tmp_path / "evil.pt", "--gen-subset", "valid", {"check": False}),
        ("fairseq-train", data, *OURS, *TRAIN, "--restore-file", tmp_path / "evil.pt", "--save-dir", tmp_path / "save",
         {"check": False}),
    )  # fmt: skip
    for done in (generate, resume):
        assert done.code == 1
        assert re.search(
            r"error: .*evil\.pt holds posix\.system, which no fairseq checkpoint needs and which could run code when "
            r"it is loaded: it is not loaded", done.sentence,
        )  # fmt: skip
    assert not witness.exists()


class Addresses:
    """numpy.ndarray takes bytes for the addresses of objects: who reads the array follows them anywhere."""

    def __reduce__(self):
        return np.ndarray, ((1,), np.dtype("O"), b"\x41" * 8)


@pytest.mark.parametrize(
    "evil",
    [
        Malicious("/dev/null"),
        Sly(),
        np.load,
        Path("x"),
        re.compile("x"),
        pickle.loads,
        Addresses(),
        np.array([[], {}], object),
        np.dtype("O"),
    ],
    ids=[
        "system",
        "getattr",
        "a function",
        "a path",
        "a pattern",
        "pickle",
        "addresses",
        "objects",
        "a type of objects",
    ],
)
def test_only_what_fairseq_writes_is_allowed(tmp_path, evil):
    torch.save({"model": {}, "extra": evil}, tmp_path / "evil.pt")
    with pytest.raises(InputError, match="could run code"):
        checkpoint_utils.load_checkpoint_to_cpu(str(tmp_path / "evil.pt"))


def test_what_fairseq_writes_loads(tmp_path):
    """Namespaces, arrays and numbers of numpy; and what was loaded is saved under numpy's own names again."""
    arrays = [np.arange(6.0).reshape(2, 3), np.asfortranarray(np.eye(2)), np.array(["a", "bc"]), np.array([1], ">i4"),
              np.array([True]), np.zeros(1, np.float16)]  # fmt: skip
    state = {"args": argparse.Namespace(a=1), "arrays": arrays, "count": np.float64(3)}
    for name in ("first.pt", "second.pt"):
        torch.save(state, tmp_path / name)
        pickled = zipfile.ZipFile(tmp_path / name).read(f"{name[:-3]}/data.pkl")
        assert b"numpy" in pickled
        assert b"fairseq_plugins" not in pickled
        state = load_safely(tmp_path / name)
        assert state["args"] == argparse.Namespace(a=1)
        assert state["count"] == 3
        for loaded, array in zip(state["arrays"], arrays, strict=True):
            assert (loaded == array).all()
            assert loaded.shape == array.shape
            assert loaded.dtype == array.dtype.newbyteorder("=")


def test_what_others_allow_is_theirs(tmp_path):
    """transformers lets torch load arrays of numpy's own: not in a checkpoint of fairseq, and afterwards again."""
    kinds = [np.ndarray, np.dtype, type(np.dtype("f8")), np._core.multiarray._reconstruct]
    torch.save({"model": {}, "extra": np.eye(2)}, tmp_path / "array.pt")
    torch.save({"model": {}, "extra": np.array([print])}, tmp_path / "objects.pt")
    before = torch.serialization.get_safe_globals()
    with torch.serialization.safe_globals(kinds):
        assert type(torch.load(tmp_path / "array.pt", weights_only=True)["extra"]) is np.ndarray
        assert type(load_safely(tmp_path / "array.pt")["extra"]) is checkpoints.SafeArray
        with pytest.raises(InputError, match="could run code"):
            checkpoint_utils.load_checkpoint_to_cpu(str(tmp_path / "objects.pt"))
        assert type(torch.load(tmp_path / "array.pt", weights_only=True)["extra"]) is np.ndarray
    assert set(torch.serialization.get_safe_globals()) == set(before)


def test_something_else(tmp_path):
    (tmp_path / "page.pt").write_text("<html>not found</html>")
    torch.save({"weights": 1}, tmp_path / "other.pt")
    for name in ("page.pt", "other.pt"):
        with pytest.raises(InputError, match=rf"{name} is not a (whole )?checkpoint of fairseq"):
            checkpoint_utils.load_checkpoint_to_cpu(str(tmp_path / name))
        with pytest.raises(InputError, match=rf"{name} is not a (whole )?checkpoint of fairseq"):
            average_states([tmp_path / name])
    torch.save({"model": {"x": 3}}, tmp_path / "number.pt")
    with pytest.raises(InputError, match="not a checkpoint of fairseq: x of its model is no tensor"):
        average_states([tmp_path / "number.pt"])
    with pytest.raises(InputError, match="is a folder: say how many of its checkpoints with --last"):
        average_states([tmp_path])


@pytest.mark.parametrize("share", [0, 0.01, 0.5, 0.99])
def test_half_a_checkpoint(trained, tmp_path, share):
    whole = (trained / "checkpoint_last.pt").read_bytes()
    (tmp_path / "half.pt").write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(InputError, match=r"half\.pt is not a whole checkpoint of fairseq"):
        checkpoint_utils.load_checkpoint_to_cpu(str(tmp_path / "half.pt"))


def test_a_copy_that_is_interrupted_leaves_the_last_checkpoint_whole(tmp_path, monkeypatch):
    """fairseq copies each checkpoint to checkpoint_last.pt."""
    last, new = tmp_path / "checkpoint_last.pt", tmp_path / "checkpoint2.pt"
    last.write_bytes(b"the old one")
    new.write_bytes(b"the new one")

    def half(source, target):
        with open(target, "wb") as file:
            file.write(b"the n")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copyfile", half)
        with pytest.raises(KeyboardInterrupt):
            PathManager.copy(str(new), str(last), overwrite=True)
    assert last.read_bytes() == b"the old one"
    assert PathManager.copy(str(new), str(last), overwrite=True)
    assert last.read_bytes() == b"the new one"


def test_which_checkpoints():
    names = ["checkpoint9.pt", "checkpoint10.pt", "checkpoint2.pt", "checkpoint_best.pt", "checkpoint_last.pt",
             "checkpoint_1_500.pt", "checkpoint_2_1000.pt", "checkpoint10.pt.tmp"]  # fmt: skip
    assert choose_checkpoints(names, 2, "epoch") == ["checkpoint9.pt", "checkpoint10.pt"]
    assert choose_checkpoints(names, 1, "update") == ["checkpoint_2_1000.pt"]
    assert choose_checkpoints(names, 9, "epoch") == ["checkpoint2.pt", "checkpoint9.pt", "checkpoint10.pt"]


def test_average(trained, data, tmp_path):
    by_epoch = plugin("average", "--last", "2", trained, "-o", tmp_path / "epochs.pt")
    by_update = plugin("average", "--last", "2", "--by", "update", trained, "-o", tmp_path / "updates.pt")
    listed = plugin("average", trained / "checkpoint1.pt", trained / "checkpoint3.pt", "-o", tmp_path / "listed.pt")
    assert by_epoch.out.count("takes ") == 2
    assert f"takes {trained}/checkpoint2.pt\ntakes {trained}/checkpoint3.pt\n" in by_epoch.out
    updates = sorted(int(path.stem.split("_")[2]) for path in trained.glob("checkpoint_[0-9]*_*.pt"))
    assert updates == list(range(25, updates[-1] + 1, 25)), "also where an epoch ends"
    assert re.findall(r"_(\d+)\.pt\n", by_update.out) == [str(number) for number in updates[-2:]]
    assert f"wrote {tmp_path}/listed.pt, the average of 2" in listed.out
    first, third = (load_safely(trained / f"checkpoint{epoch}.pt")["model"] for epoch in (1, 3))
    mean = load_safely(tmp_path / "listed.pt")["model"]
    assert mean.keys() == first.keys()
    for name, value in mean.items():
        assert torch.allclose(value, (first[name] + third[name]) / 2, atol=1e-7)
        assert value.dtype == first[name].dtype
    done = run("fairseq-generate", data, *OURS, "--cpu", "--path", tmp_path / "epochs.pt", "--gen-subset", "valid",
               "--max-len-b", "5", "--quiet")  # fmt: skip
    assert "Translated 53 sentences" in done.out


def test_an_average_does_not_replace_a_checkpoint_that_it_is_of(trained):
    refused = plugin(
        "average", trained / "checkpoint1.pt", trained / "checkpoint3.pt", "-o", trained / "checkpoint3.pt", code=1
    )
    assert refused.sentence.endswith("checkpoint3.pt is read by this command, and would be lost: name another output")


def test_different_models_are_not_averaged(trained, tmp_path):
    state = load_safely(trained / "checkpoint1.pt")
    name = next(iter(state["model"]))
    shape = tuple(state["model"][name].shape)
    state["model"][name] = state["model"][name][:-1]
    torch.save(state, tmp_path / "smaller.pt")
    with pytest.raises(InputError, match=re.escape(f"different models: {name} is {shape} in the one")):
        average_states([trained / "checkpoint1.pt", tmp_path / "smaller.pt"])
    del state["model"][name]
    torch.save(state, tmp_path / "other.pt")
    with pytest.raises(InputError, match=re.escape(f"only one of them has {name}")):
        average_states([trained / "checkpoint1.pt", tmp_path / "other.pt"])
    with pytest.raises(InputError, match="there is no checkpoint"):
        average_states([tmp_path / "none.pt"])
    few = plugin("average", "--last", "9", trained, "-o", tmp_path / "none.pt", code=1)
    assert few.sentence == (
        f"error: {trained} has 3 checkpoints by epoch, such as checkpoint7.pt, and 9 were asked for"
    )
    assert not (tmp_path / "none.pt").exists()


def test_what_is_averaged(tmp_path):
    """Weights that two names share are averaged once; whole numbers are not averaged with others."""
    for number, name in enumerate(("one.pt", "three.pt")):
        shared = torch.full((2,), 1.0 + 2 * number, dtype=torch.float64)
        torch.save({"model": {"a": shared, "b": shared, "count": torch.tensor([7])}}, tmp_path / name)
    found = average_states([tmp_path / "one.pt", tmp_path / "three.pt"])["model"]
    assert [value.tolist() for value in found.values()] == [[2.0, 2.0], [2.0, 2.0], [7]]
    torch.save({"model": {"a": shared, "b": shared.long(), "count": torch.tensor([7])}}, tmp_path / "whole.pt")
    for names in (("one.pt", "whole.pt"), ("whole.pt", "one.pt")):
        with pytest.raises(InputError, match="only one of them has whole numbers as b"):
            average_states([tmp_path / name for name in names])


def test_what_does_not_fit_is_told_as_fairseq_tells_it():
    """The reason stays with the error that fairseq has in its place."""

    def load(trainer, filename):
        try:
            raise RuntimeError("Missing key(s) in state_dict: x")
        except RuntimeError:
            raise Exception("please ensure that the architectures match")  # noqa: B904

    with pytest.raises(Exception, match="architectures match") as raised:
        explain_restoring(load)(None, "checkpoint.pt")
    assert "Missing key" in str(raised.value.__context__)
    assert not raised.value.__suppress_context__


def test_average_is_a_function(trained, tmp_path, capsys):
    average([trained], tmp_path / "last.pt", last=1, by="update")
    average([trained / "checkpoint1.pt"], tmp_path / "one.pt")
    assert f"wrote {tmp_path}/one.pt, the average of 1\n" in capsys.readouterr().out
    assert load_safely(tmp_path / "last.pt")["model"].keys() == load_safely(tmp_path / "one.pt")["model"].keys()
    with pytest.raises(InputError, match="there is no folder"):
        average([trained / "checkpoint1.pt"], tmp_path / "nowhere" / "one.pt")


@pytest.mark.parametrize("length", [4, 5], ids=["within an epoch", "at the end of one"])
def test_only_so_many_updates_are_kept(tmp_path, monkeypatch, length):
    """--keep-interval-updates 1 keeps one, also where the last falls on the end of an epoch."""

    class Training:
        data_parallel_rank, checkpoint_suffix, should_save_checkpoint_on_current_rank = 0, "", True
        always_call_state_dict_during_save_checkpoint = False
        task = None
        updates = 0

        def consolidate_optimizer(self):
            pass

        def get_num_updates(self):
            return self.updates

        def save_checkpoint(self, path, extra_state):
            Path(path).write_text(str(self.updates))

    class Epoch:
        epoch = 1

        def __init__(self, end):
            self.end_of_epoch = lambda: end

        def state_dict(self):
            return {}

    monkeypatch.delattr(checkpoint_utils.save_checkpoint, "best", raising=False)
    cfg = OmegaConf.structured(
        CheckpointConfig(save_dir=str(tmp_path), save_interval_updates=1, no_epoch_checkpoints=True)
    )
    cfg.keep_interval_updates = 1
    trainer = Training()
    for trainer.updates in range(1, 6):
        checkpoint_utils.save_checkpoint(cfg, trainer, Epoch(trainer.updates == length), None)
        kept = sorted(path.name for path in tmp_path.iterdir())
        assert kept == [f"checkpoint_1_{trainer.updates}.pt", "checkpoint_last.pt"]
    cfg.keep_interval_updates_pattern = 5
    trainer.updates = 6
    checkpoint_utils.save_checkpoint(cfg, trainer, Epoch(True), None)
    kept = sorted(path.name for path in tmp_path.iterdir())
    assert kept == ["checkpoint_1_5.pt", "checkpoint_1_6.pt", "checkpoint_last.pt"]


def test_a_checkpoint_of_another_dictionary(trained, data, tmp_path):
    folder = tmp_path / "DATA"
    shutil.copytree(data, folder)
    plugin("dictionary", folder, "--vocabulary", "dropout", "--overwrite")
    path = trained / "checkpoint_last.pt"
    generate, interactive, train = run_both(
        ("fairseq-generate", folder, *OURS, "--cpu", "--path", path, "--gen-subset", "valid", {"check": False}),
        ("fairseq-interactive", folder, *OURS, "--cpu", "--path", path, {"check": False, "stdin": "the value\n"}),
        ("fairseq-train", folder, *OURS, *TRAIN, "--restore-file", path, "--save-dir", tmp_path / "save",
         {"check": False}),
    )  # fmt: skip
    before, now = (len((place / "dict.en.txt").read_text().splitlines()) + 4 for place in (data, folder))
    for done in (generate, interactive, train):
        assert done.code == 1
        assert done.sentence == (
            f"error: {path} was trained with {before} entries in the dictionary of the source side, and now it has "
            f"{now}: the dictionary has changed. Use the one that it was trained with, or train again, with another "
            f"--save-dir"
        )
