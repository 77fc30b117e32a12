"""Killed and restarted, on one rank and on two: the same batches and the same losses as if nothing had happened."""

import signal
import socket
import subprocess

import numpy as np
import pytest

from tests.fairseq_plugins.conftest import BIN, RECORD, ROOT, TRAIN, Done, environment, read_record, run
from tests.patience import PATIENCE, wait_until

P = ["--bpe", "bpe_dropout", "--bpe-dropout-src", "0.2", "--bpe-dropout-tgt", "0.2"]
SAVING = ["--save-interval-updates", "5", "--keep-interval-updates", "1"]


def start(log, *arguments, **more) -> subprocess.Popen:
    command = [str(BIN / "fairseq-train"), *map(str, arguments)]
    return subprocess.Popen(command, env=environment(**more), cwd=ROOT, stdout=log.open("w"), stderr=subprocess.STDOUT)


def kill_at(processes, log, update: int) -> None:
    """Kills without warning when the log has reached an update."""

    def reached() -> bool:
        assert all(process.poll() is None for process in processes), log.read_text()[-3000:]
        return any(number >= update for number in Done(0, log.read_text()).losses)

    wait_until(reached, lambda: log.read_text()[-3000:])
    for process in processes:
        process.send_signal(signal.SIGKILL)
        process.wait()


@pytest.mark.parametrize(
    "options", [P, [*P[:2], "--bpe-dropout-src", "0", "--bpe-dropout-tgt", "0"]], ids=["drawn", "plain"]
)
def test_killed_in_mid_epoch(data, tmp_path, options):
    """In the second epoch, so that the batches of an epoch, too, must be found again."""
    arguments = [data, *RECORD, *options, *TRAIN, *SAVING, "--max-epoch", "3", "--num-workers", "1"]
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    for folder in (whole, broken):
        folder.mkdir()
    done = run("fairseq-train", *arguments, "--save-dir", whole / "save", RECORD=str(whole))
    epoch = len(done.losses) // 3
    process = start(tmp_path / "log", *arguments, "--save-dir", broken / "save", RECORD=str(broken))
    kill_at([process], tmp_path / "log", epoch + 8)
    again = run("fairseq-train", *arguments, "--save-dir", broken / "save", RECORD=str(broken))
    assert "Loaded checkpoint" in again.out
    resumed = min(again.losses)
    assert epoch < resumed <= epoch + 9
    assert again.losses == {update: loss for update, loss in done.losses.items() if update >= resumed}
    assert trained(broken)[-len(again.losses) :] == trained(whole)[-len(again.losses) :]


def ranks(folder, log, *arguments) -> list[subprocess.Popen]:
    """Two processes of torch.distributed, as two GPUs would be, but on the CPU."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    distributed = [
        "--distributed-no-spawn", "--distributed-backend", "gloo", "--ddp-backend", "legacy_ddp",
        "--distributed-init-method", f"tcp://localhost:{port}", "--distributed-world-size", "2",
    ]  # fmt: skip
    return [
        start(log if rank == 0 else log.with_suffix(".1"), *arguments, *distributed, "--distributed-rank", rank,
              "--save-dir", folder / "save", RECORD=str(folder))
        for rank in (0, 1)
    ]  # fmt: skip


def wait(processes, log) -> Done:
    for process in processes:
        assert process.wait(timeout=PATIENCE) == 0, log.read_text()[-3000:] + log.with_suffix(".1").read_text()[-3000:]
    return Done(0, log.read_text())


def trained(folder):
    return [batch for batch in read_record(folder) if batch["training"]]


def segmentations(record):
    """pair: the tokens of both sides, of every time that it was trained on."""
    found = {}
    for batch in record:
        for pair, source, target in zip(batch["id"], batch["source"], batch["target"], strict=True):
            found.setdefault(pair, []).append((source, target))
    return found


def test_two_ranks(data, tmp_path):
    """Each epoch is a partition of the sentences, segmented as on one rank; and a kill and a resume change nothing."""
    arguments = [data, *RECORD, *P, *TRAIN, *SAVING, "--required-batch-size-multiple", "1", "--max-epoch", "2"]
    one, whole, broken = (tmp_path / name for name in ("one", "whole", "broken"))
    for folder in (one, whole, broken):
        folder.mkdir()
    both = ranks(whole, tmp_path / "whole.log", *arguments)
    done = wait(both, tmp_path / "whole.log")
    run("fairseq-train", *arguments, "--save-dir", one / "save", RECORD=str(one))

    alone, together = segmentations(trained(one)), segmentations(trained(whole))
    assert alone.keys() == set(range(600))
    assert all(len(seen) == 2 for seen in alone.values())
    # A rank that has one batch less than the other trains on any batch that it has seen, with no weight, perhaps one of
    # validation. Both must log the same all the same, so that there is such an epoch is part of the test.
    ends = np.cumsum([0, *(len(batch["id"]) for batch in trained(one))]).tolist()
    assert ends.index(600) % 2 == 1 or (len(ends) - 1 - ends.index(600)) % 2 == 1
    for pair, seen in alone.items():
        assert {str(one) for one in seen} <= {str(one) for one in together[pair]}
    assert sum(map(len, together.values())) < 1200 + 100

    epoch = len(done.losses) // 2
    processes = ranks(broken, tmp_path / "broken.log", *arguments)
    kill_at(processes, tmp_path / "broken.log", epoch + 8)
    again = wait(ranks(broken, tmp_path / "again.log", *arguments), tmp_path / "again.log")
    resumed = min(again.losses)
    assert epoch < resumed
    assert again.losses == {update: loss for update, loss in done.losses.items() if update >= resumed}
