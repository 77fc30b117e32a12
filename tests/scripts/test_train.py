"""What a training is told, when it ends, and what it leaves behind, without training: tests/scripts/test_system.py
trains."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bpe_dropout import InputError
from scripts.commands import run_logged
from scripts.corpora import ROOT
from scripts.runs import Run, plan_run
from scripts.stage import write_json
from scripts.train import (
    Devices,
    History,
    check_settings,
    converged,
    find_devices,
    launch,
    shape_batch,
    train_arguments,
)

IWSLT = plan_run(Run.parse("iwslt15.en-zh.bpe-dropout.base.seed3"))


@pytest.mark.parametrize("batch", [4000, 32000])
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 8, 16, 64])
def test_batches_are_the_papers_on_any_number_of_gpus(batch, ranks):
    used, tokens, times = shape_batch(batch, ranks, 4000)
    assert 1 <= used <= ranks
    assert 1000 <= tokens <= 4000
    assert batch <= used * tokens * times < batch + used * times


def value_of(arguments: list[str], name: str) -> str:
    return arguments[arguments.index(name) + 1]


def test_the_command_line():
    arguments = train_arguments(IWSLT, Path("DATA"), Path("OUT"), Devices())
    assert arguments[0] == "DATA"
    for name, value in {
        "--source-lang": "en",
        "--target-lang": "zh",
        "--bpe": "bpe_dropout",
        "--bpe-dropout-src": "0.1",
        "--bpe-dropout-tgt": "0.6",
        "--max-tokens": "4000",
        "--update-freq": "1",
        "--max-update": "43000",
        "--seed": "3",
        "--save-interval-updates": "1000",
        "--eval-bleu-detok": "characters",
        "--arch": "transformer",
        "--lr": "0.0007",
    }.items():
        assert value_of(arguments, name) == value
    assert "--cpu" in arguments
    assert "--fp16" not in arguments


def test_the_command_line_on_gpus():
    plan = plan_run(Run.parse("wmt14.en-de.unigram.base.seed1"))
    arguments = train_arguments(plan, Path("DATA"), Path("OUT"), Devices(gpus=4, nodes=2, tasks=4))
    assert {"--fp16"} <= set(arguments)
    assert "--cpu" not in arguments
    assert value_of(arguments, "--distributed-world-size") == "8"
    assert (value_of(arguments, "--max-tokens"), value_of(arguments, "--update-freq")) == ("4000", "1")
    assert (value_of(arguments, "--bpe"), value_of(arguments, "--unigram-unit")) == ("unigram_regularization", "word")
    assert launch(arguments, Devices(gpus=4, nodes=2, tasks=4), 8)[:6] == [
        "srun",
        "--kill-on-bad-exit=1",
        "--nodes",
        "2",
        "--ntasks",
        "8",
    ]
    assert launch(arguments, Devices(gpus=8), 8)[0].endswith("fairseq-train"), "one machine: fairseq starts its own"


def test_devices():
    assert find_devices({}).nodes == 1
    assert find_devices({"TASKS": "2"}).tasks == 0, "outside of Slurm there is nobody to start them"
    assert find_devices({"SLURM_JOB_ID": "7", "SLURM_NNODES": "2", "TASKS": "2", "GPUS": "0"}) == Devices(0, 2, 2)
    with pytest.raises(InputError, match="GPUS is a number of GPUs, not all"):
        find_devices({"GPUS": "all"})


def test_convergence_waits_longer_in_longer_trainings():
    flat = dict.fromkeys(range(1, 200), 1.0)
    assert converged(flat, patience=10, share=0.25) == 11
    rising = {**{update: float(update) for update in range(1, 101)}, **dict.fromkeys(range(101, 200), 0.0)}
    assert converged(rising, patience=10, share=0.25) == 134  # 34 of 134 are a quarter
    assert converged({}, 10, 0.25) is None
    assert converged({update: float(update) for update in range(100)}, 10, 0.25) is None


def test_the_log_of_a_training():
    lines = [
        '2026-01-01 | INFO | train_inner | {"epoch": 1, "update": 0.5, "loss": "9.1", "num_updates": "50", "ups": "2"}',
        '2026-01-01 | INFO | valid | {"epoch": 1, "valid_loss": "8", "valid_bleu": "1.25", "valid_num_updates": "100"}',
        "2026-01-01 | INFO | fairseq.checkpoint_utils | Saved checkpoint a/checkpoint_1_100.pt (epoch 1 @ 100 updates,",
        '2026-01-01 | INFO | train | {"epoch": 1, "train_src_ratio": "1.21", "train_loss": "7"}',
        '2026-01-01 | INFO | valid | {"epoch": 1, "valid_lo',
        "anything else | valid | even this",
    ]
    history = History()
    for line in lines:
        history.read(line)
    assert history.bleu == {100: 1.25}
    assert history.saved == {100}
    assert history.last["num_updates"] == "50"
    assert history.epoch["train_src_ratio"] == "1.21"


def test_a_training_goes_on_with_its_own_settings_alone(tmp_path):
    path = tmp_path / "settings.json"
    check_settings(IWSLT, path)
    check_settings(IWSLT, path)
    write_json(path, {**json.loads(path.read_text()), "updates at most": 1})
    check_settings(IWSLT, path)
    write_json(path, {**json.loads(path.read_text()), "dropout": {"src": 0.2, "tgt": 0.2}})
    with pytest.raises(InputError, match=r"begun with other settings \(dropout\)"):
        check_settings(IWSLT, path)


def test_a_command_that_fails_shows_the_end_of_its_log(tmp_path):
    code = "import sys; print('first'); print('the reason', file=sys.stderr); sys.exit(3)"
    with pytest.raises(InputError, match=r"failed with 3. The end of .*x\.log:\n(.*\n)*the reason"):
        run_logged([sys.executable, "-c", code], tmp_path / "x.log")


def test_a_command_ends_when_it_is_enough(tmp_path):
    code = "import time\nfor n in range(1000): print(n, flush=True); time.sleep(0.01)"
    seen = []
    assert run_logged([sys.executable, "-c", code], tmp_path / "x.log", lambda line: seen.append(line) or "20" in line)
    assert "20" in seen
    assert len(seen) < 500


STARTER = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from scripts.commands import run_logged
CHILD = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
run_logged([sys.executable, "-c", CHILD], Path(sys.argv[2]))
"""


def test_a_command_does_not_outlive_who_started_it(tmp_path):
    """Even one that was killed outright; and nobody starts it a second time while it runs."""
    log = tmp_path / "x.log"
    starter = subprocess.Popen([sys.executable, "-c", STARTER, str(ROOT), str(log)])
    deadline = time.monotonic() + 60
    while not (log.exists() and len(log.read_text().splitlines()) > 1):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    with pytest.raises(InputError, match="this is being done already"):
        run_logged(["true"], log)
    child = int(log.read_text().splitlines()[-1])
    starter.send_signal(signal.SIGKILL)
    starter.wait()
    while (
        Path(f"/proc/{child}").exists()
        and Path(f"/proc/{child}/status").read_text().split("State:")[1].split()[0] != "Z"
    ):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    run_logged(["true"], log)
    assert os.path.getsize(log)
