"""What a training is told, when it ends, and what it leaves behind, without training: tests/scripts/test_system.py
trains."""

import contextlib
import dataclasses
import json
import os
import platform
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from bpe_dropout import InputError
from bpe_dropout.files import whole
from scripts.arguments import launch, train_arguments
from scripts.commands import held, run_logged
from scripts.corpora import ROOT
from scripts.devices import KEEP_MEMORY, Devices, environment_of, find_devices, ranks_of, shape_batch
from scripts.history import History, best_of, converged, logged, over_windows, progress
from scripts.runs import OnDev, Run, plan_run
from scripts.stage import write_json
from scripts.train import check_settings, checkpoints_until, number_the_last
from tests.patience import wait_until

BOTH: tuple[OnDev, ...] = ("bleu", "loss")
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


@pytest.mark.parametrize(
    ("system", "src", "tgt"),
    [
        ("bpe-dropout-p14-13", "0.14", "0.13"),
        ("bpe-dropout-rare-p46-41", "frequency:0..0.46", "frequency:0..0.41"),
        ("bpe-dropout-frequent-p20-19", "frequency:0.2..0", "frequency:0.19..0"),
        ("bpe-dropout-annealed-p20", "0.2@anneal:120", "0.2@anneal:120"),
        ("bpe-dropout-src-p30", "0.3", "0.0"),
        ("bpe", "0.0", "0.0"),
    ],
)
def test_the_p_of_a_run_is_the_scale_of_its_rule(system, src, tgt):
    plan = plan_run(Run.parse(f"multi30k.en-de.5k.{system}.small.seed1"))
    arguments = train_arguments(plan, Path("DATA"), Path("OUT"), Devices())
    assert value_of(arguments, "--bpe-dropout-src") == src
    assert value_of(arguments, "--bpe-dropout-tgt") == tgt


def test_the_command_line_on_gpus():
    plan = plan_run(Run.parse("wmt14.en-de.unigram.base.seed1"))
    arguments = train_arguments(plan, Path("DATA"), Path("OUT"), Devices(gpus=4, nodes=2, tasks=4))
    assert {"--fp16"} <= set(arguments)
    assert "--cpu" not in arguments
    assert value_of(arguments, "--distributed-world-size") == "8"
    assert (value_of(arguments, "--max-tokens"), value_of(arguments, "--update-freq")) == ("4000", "1")
    assert (value_of(arguments, "--bpe"), value_of(arguments, "--unigram-unit")) == (
        "unigram_regularization",
        "sentence",
    )
    assert launch(arguments, Devices(gpus=4, nodes=2, tasks=4), 8)[:6] == [
        "srun",
        "--kill-on-bad-exit=1",
        "--nodes",
        "2",
        "--ntasks",
        "8",
    ]
    assert launch(arguments, Devices(gpus=8), 8)[0].endswith("fairseq-train"), "one machine: fairseq starts its own"


def test_a_training_sees_the_gpus_that_it_uses_alone(monkeypatch):
    """fairseq takes all that it sees."""
    for seen, gpus, expected in (("", 8, "0,1,2,3"), ("4,5,6,7", 4, "4,5,6,7"), ("3,5", 2, "3,5")):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", seen)
        devices = Devices(gpus=gpus)
        ranks = ranks_of(IWSLT, devices)[0]
        assert environment_of(IWSLT, devices, ranks)["CUDA_VISIBLE_DEVICES"] == expected
        assert value_of(train_arguments(IWSLT, Path("D"), Path("O"), devices), "--distributed-world-size") == str(ranks)
    small = plan_run(Run.parse("demo.en-fr.bpe.small.seed1"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert environment_of(small, Devices(gpus=4), 1)["CUDA_VISIBLE_DEVICES"] == "0"
    assert value_of(train_arguments(small, Path("D"), Path("O"), Devices(gpus=4)), "--distributed-world-size") == "1"


def test_on_the_cpu_memory_is_kept_as_the_user_has_it(monkeypatch):
    monkeypatch.setenv("MALLOC_TOP_PAD_", "4096")
    environment = environment_of(IWSLT, Devices())
    assert {name: environment[name] for name in KEEP_MEMORY} == {**KEEP_MEMORY, "MALLOC_TOP_PAD_": "4096"}
    assert not KEEP_MEMORY.keys() & environment_of(IWSLT, Devices(gpus=1)).keys()


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc reads these settings")
def test_the_memory_of_tensors_is_not_asked_for_again():
    """As page faults tell, which are counted, not timed."""
    code = """if True:
        import resource, torch
        for _ in range(100):
            torch.ones(9_000_000)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
    """
    faults = [
        int(subprocess.run([sys.executable, "-c", code], env={**os.environ, **settings}, capture_output=True).stdout)
        for settings in ({}, KEEP_MEMORY)
    ]
    of_a_tensor = 36_000_000 // os.sysconf("SC_PAGE_SIZE")
    assert faults[0] - faults[1] > 80 * of_a_tensor, "all but the first few tensors cost nothing"


def test_devices():
    slurm = {"SLURM_JOB_ID": "7", "TASK_CORES": "2"}
    assert find_devices({}, there=3) == Devices(1), "the others are for other runs"
    assert find_devices({}, there=0) == Devices(0)
    assert find_devices({"GPUS": "3"}, there=3) == Devices(3)
    assert find_devices({"GPUS": "1"}, there=3) == Devices(1)
    assert find_devices({"TASKS": "2"}, there=0).tasks == 0, "outside of Slurm there is nobody to start them"
    assert find_devices({**slurm, "GPUS": "4", "NODES": "2"}, there=4) == Devices(4, 2, 4, cores=2)
    assert find_devices({**slurm, "GPUS": "0", "TASKS": "2"}, there=0) == Devices(0, 1, 2, cores=2)
    with pytest.raises(InputError, match="GPUS is a number, not all"):
        find_devices({"GPUS": "all"}, there=1)
    with pytest.raises(InputError, match="1 GPUs were asked for, and torch sees 0"):
        find_devices({**slurm, "GPUS": "1"}, there=0)
    with pytest.raises(InputError, match="16 GPUs are too many for batches of 4000 source tokens: 4 are enough"):
        ranks_of(IWSLT, Devices(4, 4, 4))


def test_convergence_waits_longer_in_longer_trainings():
    flat = dict.fromkeys(range(1, 200), 1.0)
    assert converged(flat, flat, patience=10, share=0.25, by=BOTH) == 11
    rising = {**{update: float(update) for update in range(1, 101)}, **dict.fromkeys(range(101, 200), 0.0)}
    assert converged(rising, flat, patience=10, share=0.25, by=BOTH) == 134  # 34 of 134 are a quarter
    assert converged({}, {}, 10, 0.25, BOTH) is None
    assert (
        converged({update: float(update) for update in range(100)}, dict.fromkeys(range(100), 1.0), 10, 0.25, BOTH)
        is None
    )


def test_a_training_keeps_the_checkpoints_with_the_best_mean_until_it_stops():
    """The five around 2500 are known to be the best 6 checkpoints later; a peak by chance does not count."""
    plan = plan_run(Run.parse("multi30k.en-de.5k.bpe.small.seed1"))
    bleu = {updates: 20 - abs(updates - 2500) / 1000 for updates in range(plan.interval, 20000, plan.interval)}
    bleu[1250] += 1.5
    assert best_of(bleu) == 1250
    falls = {updates: 1 / updates for updates in bleu}
    model = plan.model
    means = over_windows(bleu, model.window)
    stopped = converged(means, over_windows(falls, model.window), model.patience, model.patience_share, model.stops_by)
    assert (best_of(means), stopped) == (3000, 4500), "dev loss does not count"
    written = [f"checkpoint_9_{updates}.pt" for updates in bleu if updates <= stopped]
    kept = written[
        -int(value_of(train_arguments(plan, Path("DATA"), Path("OUT"), Devices()), "--keep-interval-updates")) :
    ]
    chosen = checkpoints_until(best_of(means), kept, model.average)
    assert chosen == [f"checkpoint_9_{updates}.pt" for updates in range(2000, 3001, 250)]
    assert (IWSLT.checkpoints, IWSLT.model.window) == (7, 1), "the five latest need no others"


def test_a_peak_of_dev_bleu_by_chance_does_not_end_a_training_whose_dev_loss_falls():
    bleu = {update: 0.5 if update == 10 else 0.1 for update in range(10, 1000, 10)}
    falls = {update: 9 - min(update, 500) / 100 for update in bleu}
    assert converged(bleu, falls, patience=10, share=0.25, by=BOTH) == 670, (
        "17 of 67 are a quarter, since the loss was lowest"
    )
    assert converged(bleu, dict.fromkeys(bleu, 9.0), patience=10, share=0.25, by=BOTH) == 110


def test_the_log_of_a_training_that_was_killed_and_went_on():
    """Lines of a real one, in whose second call fairseq says `"wall": "0"`."""
    lines = (Path(__file__).parent / "resumed.log").read_text().split("\n")
    assert sum('"wall": "0"' in line for line in lines) == 4
    history = History()
    for line in [*lines, '2026 | INFO | valid | {"epoch": 1, "valid_lo', "anything else | valid | even this"]:
        history.read(line)
    assert history.bleu == {7: 0.05, 14: 0.08, 21: 0.09, 28: 0.83, 35: 0.34, 42: 1.18, 49: 1.08}
    assert history.loss[49] == 6.907
    assert history.seconds == (23 - 18) + (57 - 54)
    assert history.last["num_updates"] == "49"
    assert list(history.epochs) == [5, 10, 15, 20, 25, 30, 35, 40, 45, 49]


@pytest.mark.parametrize("after", ["| train_inner | ", "| valid | ", "| train | ", "done training"])
def test_what_a_training_leaves_behind_does_not_depend_on_how_much_of_its_log_was_read(after):
    """At its last update, 49, fairseq also sums up the four of five batches that the last epoch had."""
    lines = (Path(__file__).parent / "resumed.log").read_text().split("\n")
    end = max(number for number, line in enumerate(lines) if after in line)
    history = History()
    for line in lines[: end + 1]:
        history.read(line)
    assert (49 in history.epochs) == (after in ("| train | ", "done training"))
    assert [logged(history, name, 49) for name in ("src_ratio", "tgt_ratio", "src_wpb")] == [1.1192, 1.1416, 1376.6]
    assert (progress(history, "update", 49), progress(history, "update", 48)) == (9.8, 8.4)
    assert logged(history, "src_ratio", 5) is None, "no epoch was whole, and nothing was said of its progress"
    assert logged(history, "src_ratio", 7) == float(history.epochs[5]["train_src_ratio"])


def test_a_training_goes_on_with_its_own_settings_and_data_alone(tmp_path):
    path, data = tmp_path / "settings.json", tmp_path / "DATA"
    data.mkdir()
    (data / "train.en-zh.en").write_text("some words\n")
    check_settings(IWSLT, data, path)
    (data / "train.en-zh.en.words").write_text("made by a training")
    (data / "test.en-zh.en").write_text("not trained on")
    check_settings(IWSLT, data, path)
    write_json(path, {**json.loads(path.read_text()), "updates at most": 1})
    check_settings(IWSLT, data, path)
    (data / "train.en-zh.en").write_text("other words\n")
    with pytest.raises(InputError, match=r"started with other settings or data \(data\)"):
        check_settings(IWSLT, data, path)
    (data / "train.en-zh.en").write_text("some words\n")
    write_json(path, {**json.loads(path.read_text()), "dropout": {"src": 0.2, "tgt": 0.2}})
    with pytest.raises(InputError, match=r"started with other settings or data \(dropout\)"):
        check_settings(IWSLT, data, path)


def test_how_much_room_a_model_takes_is_no_setting_of_a_run():
    roomier = dataclasses.replace(IWSLT, model=dataclasses.replace(IWSLT.model, memory=1, threads=1, tokens_at_once=1))
    assert roomier.settings() == IWSLT.settings()


def test_a_file_appears_when_it_is_whole(tmp_path):
    path = tmp_path / "a"
    left = tmp_path / f"a.{socket.gethostname()}.99999999.part"
    left.write_text("of a process that was killed")
    with contextlib.suppress(KeyboardInterrupt), whole(path) as part:
        part.write_text("half")
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []
    with whole(path) as part, whole(tmp_path / "b") as other:
        assert part != other
        part.write_text("x")
        other.write_text("y")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a", "b"]


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


def test_a_call_begins_a_line_of_the_log(tmp_path):
    """Also after half a line of a process that was killed: by its first line the times of a call are found."""
    log = tmp_path / "x.log"
    for _ in range(2):
        run_logged([sys.executable, "-c", "print('half a line', end='')"], log)
    assert [line[:2] for line in log.read_text().split("\n")] == ["$ ", "ha", "$ ", "ha"]


STARTER = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from scripts.commands import run_logged
CHILD = "import os, time; print(os.getpid(), flush=True); time.sleep(6000)"
run_logged([sys.executable, "-c", CHILD], Path(sys.argv[2]))
"""


def test_a_command_does_not_outlive_who_started_it(tmp_path, monkeypatch):
    """Even one that was killed outright; and nobody starts it a second time while it runs."""
    monkeypatch.setattr("scripts.commands.ENDING", 0.5)
    log = tmp_path / "x.log"
    starter = subprocess.Popen([sys.executable, "-c", STARTER, str(ROOT), str(log)])
    wait_until(lambda: log.exists() and len(log.read_text().splitlines()) > 1)
    with pytest.raises(InputError, match="this is being done already"):
        run_logged(["true"], log)
    child = int(log.read_text().splitlines()[-1])
    starter.send_signal(signal.SIGKILL)
    starter.wait()
    state = Path(f"/proc/{child}/status")
    wait_until(lambda: not state.exists() or state.read_text().split("State:")[1].split()[0] == "Z")
    run_logged(["true"], log)
    assert os.path.getsize(log)


def test_what_is_about_to_end_is_waited_for(tmp_path):
    """A stage of a call that was killed, which has not noticed yet; what it still writes is read."""
    log = tmp_path / "x.log"
    ending = "import time; print('begins', flush=True); time.sleep(1.5); print('last line', flush=True)"
    with ThreadPoolExecutor() as threads:
        first = threads.submit(run_logged, [sys.executable, "-c", ending], log)
        wait_until(lambda: log.exists() and "begins" in log.read_text())
        with held(log):
            assert log.read_text().endswith("last line\n")
        assert first.result() is False
    run_logged(["true"], log)


def test_the_last_checkpoint_gets_its_number(tmp_path):
    """Where a training was killed between its last checkpoint and the copy with its number."""
    state = {"optimizer_history": [{"num_updates": 300}], "extra_state": {"train_iterator": {"epoch": 4}}}
    torch.save(state, tmp_path / "checkpoint_last.pt")
    number_the_last(tmp_path, 200)
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint_last.pt"]
    number_the_last(tmp_path, 300)
    assert (tmp_path / "checkpoint_4_300.pt").read_bytes() == (tmp_path / "checkpoint_last.pt").read_bytes()
