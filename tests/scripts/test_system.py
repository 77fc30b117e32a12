"""The whole graph, by the commands that users have, on a few hundred pairs and with a tiny model: killed in the middle,
gone on with, and on a real Slurm. The corpus is a user's own two files, with the YAML file of docs/reproduction.md."""

import hashlib
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest
import sacrebleu
import torch
from sacrebleu.metrics import CHRF

from scripts.corpora import ROOT
from scripts.reproduce import resolve, snakemake
from scripts.runs import Run, plan_run
from tests.patience import PATIENCE, wait_until
from tests.scripts.random_kills import compare, kill_at_random
from tests.scripts.tiny import HELD, HERE, METHODS, RUNS, TRAIN, Work, own_corpus


@pytest.fixture(scope="module")
def work(tmp_path_factory, english) -> Work:
    return Work(tmp_path_factory.mktemp("a system"), english)  # a path may have a space


@pytest.fixture(scope="module")
def killed(work) -> dict[str, float]:
    """The graph, killed outright while the first model trains; when what was made by then was made."""
    process = work.start("run")
    logs = [work.run(name) / "train.log" for name in RUNS]

    def has_saved_twice() -> bool:
        assert process.poll() is None, process.communicate()[0]
        return any(log.exists() and log.read_text().count("Saved checkpoint") >= 2 for log in logs)

    wait_until(has_saved_twice)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return {
        str(path): path.stat().st_mtime
        for path in (work.made / "data").rglob("*")
        if path.is_file() and path.suffix != ".words"
    }


@pytest.fixture(scope="module")
def finished(work, killed) -> str:
    return work.call("run", "mine-en-de")


def test_a_plan_does_nothing(work):
    out = work.call("plan", "mine-en-de")
    assert re.search(r"train\s+2\n", out)
    assert out.count("Job stats") == 1
    assert "Reasons" not in out
    assert "Provided" not in out
    assert (
        f"{RUNS[0]}: vocabulary en 300 / de 300, subword regularization of both sides, l = 64 for each sentence, alpha"
        in out
    )
    assert f"{RUNS[1]}: vocabulary en 300 / de 300, BPE-dropout, p = 0.1 (source) and 0.1 (target), batches of" in out
    assert not (work.made / "experiments").exists()


def test_nothing_finished_is_done_again(work, killed, finished):
    after = {path: Path(path).stat().st_mtime for path in killed}
    assert after == killed
    assert any("Loaded checkpoint" in (work.run(name) / "train.log").read_text() for name in RUNS), "it went on"
    again = work.call("run", "mine-en-de")
    assert "trains on" not in again
    assert "steps" not in again
    assert again.split("\n\n")[1:] == finished.split("\n\n")[1:], "the same results are shown"


@pytest.fixture(scope="module")
def filled(work, finished) -> Path:
    """Everything that the tables and figures need, of these runs."""
    work.call("run", "fill-report", "--runs", *RUNS, REPEATS="2")
    return work.made / "experiments" / "results"


def test_measurements_of_ones_own_runs(work, filled):
    found = {path.name: {one.stem for one in path.glob("*.json")} for path in filled.iterdir() if path.is_dir()}
    assert found.pop("comparisons") >= {f"mine.en-de.tiny.seed1.{'+'.join(METHODS)}"}
    assert found.pop("translations") == set(), "they are text"
    assert {path.stem for path in (filled / "translations").iterdir()} == set(RUNS)
    of_dropout = ("merges", "lengths", "substrings", "unknown", "calibration")
    of_any = ("datasets", "embeddings", "timing", "misspelled")
    assert found == {name: {RUNS[1]} for name in of_dropout} | {name: set(RUNS) for name in of_any}
    times = json.loads((filled / "timing" / f"{RUNS[1]}.json").read_text())
    generated = json.loads((work.run(RUNS[1]) / "generation.json").read_text())
    assert times["repeats"] == 2
    assert times["pieces"] == generated["pieces"] + HELD, "the same translations, and their ends"
    assert str(ROOT) not in json.dumps(times)
    vectors = json.loads((filled / "embeddings" / f"{RUNS[1]}.json").read_text())
    state = torch.load(work.run(RUNS[1]) / "average.pt", weights_only=False)["model"]
    assert len(state["encoder.embed_tokens.weight"]) - vectors["pieces"] - 4 in range(8)


def test_misspelled_input(work, filled):
    for run in RUNS:
        folder = work.run(run) / "misspelled"
        before = (work.made / "data" / "words" / "mine.en-de" / "test.en").read_text().splitlines()
        after = (folder / "data" / "test.en-de.en").read_text().splitlines()
        changed = [
            pair for old, new in zip(before, after, strict=True) for pair in zip(old.split(), new.split(), strict=True)
        ]
        record = json.loads((filled / "misspelled" / f"{run}.json").read_text())
        assert record == json.loads((folder / "result.json").read_text())
        assert record["test set"] == "misspelled"
        assert record["generation"]["change"]["misspelled"] == sum(old != new for old, new in changed) > 0
        references = (work.made / "data" / "raw" / "mine.en-de" / "test.de").read_text().splitlines()
        translations = (folder / "test.txt").read_text().splitlines()
        score = sacrebleu.corpus_bleu(translations, [references], lowercase=True).score
        assert record["bleu"] == pytest.approx(score)
    compared = json.loads(
        (filled / "misspelled" / "comparisons" / f"mine.en-de.tiny.seed1.{'+'.join(METHODS)}.json").read_text()
    )
    results = {run: json.loads((filled / "misspelled" / f"{run}.json").read_text()) for run in RUNS}
    assert compared["bleu"] == {run: result["bleu"] for run, result in results.items()}
    assert compared["test set"] == "misspelled"


def test_a_test_set_of_ones_own_is_one_yaml_file(work, finished):
    (work.configs / "testsets" / "garbled.yaml").write_text(
        "title: garbled\ntext: every word misspelled\nchange: misspell\nsettings: {rate: 1, seed: 2}\n"
    )
    out = work.call("run", f"garbled.{RUNS[1]}")
    result = json.loads((work.made / "experiments" / "results" / "garbled" / f"{RUNS[1]}.json").read_text())
    change = result["generation"]["change"]
    assert change["words"] == change["misspelled"] > HELD
    assert re.search(rf"garbled +bpe-dropout +{result['bleu']:.2f} ", out)


def test_what_files_are_missing_for_is_left_out_and_the_rest_is_done(work, filled):
    corpus = work.configs / "corpora" / "yours.en-de.yaml"
    corpus.write_text(own_corpus().replace("mine/", "yours/"))
    yours = "yours.en-de.bpe-dropout.tiny.seed1"
    kept = filled / f"{RUNS[1]}.json"
    kept.unlink()
    out = work.call("run", "fill-table-main", "--runs", RUNS[1], yours, code=1)
    assert f"Left out for missing files, 1 of the 2 runs of fill-table-main:\n  {yours}\nyours/text.en cannot be" in out
    assert kept.is_file()
    corpus.unlink()


def test_what_was_finished_on_another_machine_is_not_trained_again(work, filled, tmp_path):
    """A fresh clone has the results, with the translations that others can be compared with, and no models."""
    shutil.copytree(filled, tmp_path / "experiments" / "results")
    shutil.copytree(work.made / "data" / "downloads", tmp_path / "data" / "downloads")
    compared = Path("experiments") / "results" / "comparisons" / f"mine.en-de.tiny.seed1.{'+'.join(METHODS)}.json"
    arguments = ("fill-table-main", "--runs", *RUNS, "--directory", str(tmp_path))
    plan = work.call("plan", *arguments)
    assert "2 runs are finished: experiments/results has all that is asked of them" in plan
    assert "nothing is left to do" in plan
    (tmp_path / compared).unlink()
    assert re.search(r"compare\s+1\n", work.call("plan", *arguments))
    out = work.call("run", *arguments)
    assert not (tmp_path / "experiments" / "runs").exists()
    assert json.loads((tmp_path / compared).read_text()) == json.loads((work.made / compared).read_text())
    for method in METHODS:
        assert re.search(rf"^\*? +{method} +\d+\.\d\d ", out, re.M)
    # With other settings, or without its translations, a run is one more to train.
    result = tmp_path / "experiments" / "results" / f"{RUNS[0]}.json"
    result.write_text(result.read_text().replace('"updates at most": 70', '"updates at most": 80'))
    assert re.search(r"train\s+1\n", work.call("plan", *arguments))
    (tmp_path / "experiments" / "results" / "translations" / f"{RUNS[1]}.txt").unlink()
    assert re.search(r"train\s+2\n", work.call("plan", *arguments))


def test_the_report_of_ones_own_runs(work, filled, tmp_path):
    command = [sys.executable, "-m", "experiments.analysis", "report", *RUNS, "--results", str(filled)]
    command += ["--configs", str(work.configs), "--output", str(tmp_path)]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    report = (tmp_path / "README.md").read_text()
    assert "not run" not in report, "everything was filled"
    for run in RUNS:
        bleu = json.loads((filled / f"{run}.json").read_text())["bleu"]
        assert f"{bleu:.2f}" in (tmp_path / "tables" / "table-main.md").read_text()
    figures = {path.stem for path in (tmp_path / "figures").glob("*.pdf")}
    for kind in ("merges", "lengths-text", "lengths-translations", "substrings", "embeddings", "p", "size"):
        assert any(name.startswith(f"figure-{kind}") for name in figures), kind
    assert "En-De" in (tmp_path / "index.html").read_text()


def test_the_text(work, finished):
    data = work.made / "data"
    counts = json.loads((data / "raw" / "mine.en-de" / "counts.json").read_text())
    assert [counts[split]["pairs"] for split in ("train", "valid", "test")] == [TRAIN, HELD, HELD]
    raw, words = ((data / kind / "mine.en-de" / "test.en").read_text().splitlines() for kind in ("raw", "words"))
    assert set(raw) < {f"{line}." for line in work.lines}
    assert [line.lower() for line in raw] != raw
    assert [line.replace(" ", "") for line in words] == [line.lower().replace(" ", "") for line in raw]
    prepared = json.loads((data / "words" / "mine.en-de" / "counts.json").read_text())
    assert all(99 < score <= 100 for score in prepared["test"]["ceiling"].values())
    assert set(prepared["test"]["ceiling"]) == {"en", "de"}


def test_vocabularies_and_folders(work, finished):
    data = work.made / "data"
    for kind in ("bpe", "unigram"):
        folder = data / "folders" / f"mine.en-de.{kind}.en300-de300"
        for language in ("en", "de"):
            made = json.loads((data / "vocabularies" / "mine.en-de" / f"{kind}.{language}.300.json").read_text())
            assert made["pieces"] == 300
            pieces = [line.split()[0] for line in (folder / f"dict.{language}.txt").read_text().splitlines()]
            assert len([piece for piece in pieces if not piece.startswith("madeupword")]) == 300
        steps = json.loads((folder / "preparation.json").read_text())["en"]
        assert {step for step, done in steps.items() if done} == {"tokenize", "lowercase"}


@pytest.mark.parametrize("name", RUNS)
def test_a_run(work, finished, name):
    folder = work.run(name)
    training = json.loads((folder / "training.json").read_text())
    assert training["updates"] == 70
    assert list(training["dev bleu"]) == [str(number) for number in range(10, 71, 10)]
    numbers = [int(re.findall(r"\d+", checkpoint)[1]) for checkpoint in training["checkpoints"]]
    assert numbers == sorted(numbers)
    assert len(numbers) == 5
    assert numbers[-1] >= 60
    average = torch.load(folder / "average.pt", weights_only=False)["model"]
    parts = [torch.load(folder / one, weights_only=False)["model"] for one in training["checkpoints"]]
    for key, value in average.items():
        assert torch.allclose(value, sum(part[key].double() for part in parts).to(value.dtype) / 5, atol=1e-6), key
    assert all(1.05 < ratio < 3 for ratio in training["length ratios"].values())
    assert 1000 < training["batch"]["source tokens on average"] <= 2000


@pytest.mark.parametrize("name", RUNS)
def test_a_result(work, finished, name):
    result = json.loads((work.run(name) / "result.json").read_text())
    text = (work.run(name) / "test.txt").read_text().splitlines()
    references = (work.made / "data" / "raw" / "mine.en-de" / "test.de").read_text().splitlines()
    assert len(text) == HELD
    assert not any("@@" in line or "▁" in line or "&apos;" in line for line in text)
    assert result["bleu"] == pytest.approx(sacrebleu.corpus_bleu(text, [references], lowercase=True).score)
    assert result["bleu signature"].startswith("nrefs:1|case:lc|eff:no|tok:13a|smooth:exp|version:")
    assert result["chrf"] == pytest.approx(CHRF(lowercase=True).corpus_score(text, [references]).score)
    plan = plan_run(Run.parse(name), work.configs)
    assert result["configuration"] == json.loads(json.dumps(plan.settings()))
    assert result["updates"] == 70
    assert {"length ratios", "unk shares", "versions", "machine", "text", "vocabularies"} <= set(result)
    data = work.made / "data" / "folders" / plan.folder
    for file in ("train.en-de.en", "valid.en-de.de", "dict.en.txt"):
        assert result["training"]["data"][file] == hashlib.sha256((data / file).read_bytes()).hexdigest()
    assert result["machine"]["cuda"] == torch.version.cuda
    assert result["versions"]["sacrebleu"] == sacrebleu.__version__
    assert result["training"]["seconds"] > 0
    assert value_of(result["generation"]["fairseq-generate"], "--beam") == "4"
    assert value_of(result["generation"]["fairseq-generate"], "--lenpen") == "0.6"
    assert result["generation"]["seconds of translating"] > 0
    assert sum(result["generation"]["lengths"].values()) == result["generation"]["sentences"]
    kept = work.made / "experiments" / "results" / f"{name}.json"
    assert json.loads(kept.read_text()) == result


def value_of(arguments, name):
    return arguments[arguments.index(name) + 1]


def test_the_comparison_and_what_is_shown(work, finished):
    path = work.made / "experiments" / "comparisons" / "mine.en-de.tiny.seed1" / "unigram+bpe-dropout.json"
    comparison = json.loads(path.read_text())
    assert [pair["systems"] for pair in comparison["pairs"]] == [RUNS]
    assert set(comparison["best"]) <= set(RUNS)
    for method in METHODS:
        assert re.search(rf"^\*? +{method} +\d+\.\d\d ", finished, re.M)
    assert "epoch 3" in finished
    assert str(work.made / "experiments" / "results") in finished


def test_random_kills_end_in_the_same_files(work, finished, tmp_path, english):
    killed = Work(tmp_path, english)
    kill_at_random(killed, kills=2, choose=random.Random(1), longest=40)
    compare(work, killed)
    assert [*killed.run(RUNS[1]).glob("checkpoint*.pt")] == [], "removed when the run is finished"


# Slurm: a real one, of one node. It needs Debian's slurm-wlm and munge, and root to start them.


CONFIGURATION = Path("/etc/slurm/slurm.conf")


@pytest.fixture(scope="module")
def slurm():
    programs = ("munged", "slurmctld", "slurmd", "sbatch", "runuser")
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    missing = [name for name in programs if not shutil.which(name, path=path)]
    why = f"{', '.join(missing)} not installed" if missing else "only root can start it" if os.geteuid() != 0 else ""
    why = why or (f"there is a cluster here already, by {CONFIGURATION}" if CONFIGURATION.exists() else "")
    if why:
        pytest.skip(f"needs Slurm to itself (apt-get install slurm-wlm munge): {why}")
    folder = Path("/tmp") / f"slurm-{os.getpid()}"  # sockets want short names
    for name in ("state", "spool", "munge"):
        (folder / name).mkdir(parents=True)
    shutil.chown(folder / "munge", "munge")
    with socket.socket() as one, socket.socket() as other:
        ports = []
        for free in (one, other):
            free.bind(("", 0))
            ports.append(free.getsockname()[1])
    memory = int(re.search(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text())[1]) // 1024 - 500
    values = {"host": socket.gethostname().split(".")[0], "folder": folder, "cores": os.cpu_count(), "memory": memory}
    values |= {"port": ports[0], "next_port": ports[1]}
    CONFIGURATION.parent.mkdir(exist_ok=True)
    CONFIGURATION.write_text((HERE / "slurm.conf").read_text().format(**values))
    started = []

    def start(*command: str) -> None:
        environment = {**os.environ, "PATH": path}
        with (folder / f"{command[0]}.out").open("wb") as out:
            started.append(subprocess.Popen(command, env=environment, stdout=out, stderr=out))

    try:
        files = {"socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
        munge = [f"--{option}={folder}/munge/{file}" for option, file in files.items()]
        start("runuser", "-u", "munge", "--", "munged", "--foreground", "--force", *munge)
        wait_until((folder / "munge" / "socket").exists)
        start("slurmctld", "-D")
        start("slurmd", "-D")
        wait_until(
            lambda: "idle" in subprocess.run(["sinfo"], capture_output=True, text=True).stdout,
            lambda: "\n".join(["Slurm does not start:", *(file.read_text() for file in folder.glob("*.out"))]),
        )
        yield
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait(PATIENCE)
        CONFIGURATION.unlink()
        shutil.rmtree(folder, ignore_errors=True)


def test_the_same_graph_on_slurm(work, finished, slurm):
    """One run through sbatch, its training on two tasks that srun starts, in place of two GPUs. The call is killed
    while the training's job runs; the next call waits for the job, and goes on. No job may take more than 100 minutes.
    """
    name = "mine.en-de.v200.bpe-dropout.tiny.seed2"
    arguments = ("run", name, "--profile", "slurm")
    asked = {"GPUS": "0", "TASKS": "2", "CORES": "2", "KEEP_CHECKPOINTS": ""}
    process = work.start(*arguments, **asked)
    path = work.run(name) / "train.log"

    def trains() -> bool:
        assert process.poll() is None, process.communicate()[0]
        return path.exists()

    wait_until(trains)
    os.killpg(process.pid, signal.SIGKILL)
    before, _ = process.communicate()
    assert re.search(r"submitted with SLURM jobid \d+|SLURM run ID", before)
    out = work.call(*arguments, **asked)
    assert re.search(rf"Jobs of an earlier call still run in .*: train {name}\. .*: scancel \d+\n", out)
    log = path.read_text()
    assert log.count("$ srun --kill-on-bad-exit=1 --nodes 1 --ntasks 2") == 1, "it is not trained a second time"
    training = json.loads((work.run(name) / "training.json").read_text())
    assert training["devices"]["ranks"] == 2, log
    assert "distributed init (rank 1)" in log
    assert json.loads((work.run(name) / "result.json").read_text())["updates"] == 70
    assert [*work.run(name).glob("checkpoint*.pt")] == []


def test_a_stage_that_fails_says_why_and_loses_nothing(work, finished):
    text = work.made / "data" / "downloads" / "mine" / "text.de"
    whole = text.read_text()
    text.write_text("only one line\n")
    out = work.call("run", "mine-en-de", code=1)
    assert f"text.en has {len(work.lines)} sentences and" in out
    assert "text.de has 1: they must be translations, line by line" in out
    assert "mine-en-de is not finished" in out
    assert (work.run(RUNS[0]) / "result.json").is_file()
    text.write_text(whole.replace(".", "!"))
    out = work.call("run", "mine-en-de", code=1)
    assert "was started with other settings or data (data). To train again, remove that folder" in out
    text.write_text(whole)


def test_several_seeds(work):
    plan = work.call("plan", "mine-en-de", "--seed", "1", "2", "3")
    for seed in (1, 2, 3):
        assert f"mine.en-de.unigram.tiny.seed{seed}: " in plan
    assert re.search(r"train\s+[456]\n", plan)
    assert re.search(r"compare\s+[23]\n", plan)


TIMERS = """
import sys, threading
from snakemake.cli import main
try:
    main(sys.argv[1:])
except SystemExit as end:
    assert not end.code
print([one for one in threading.enumerate() if isinstance(one, threading.Timer)])
"""


def test_snakemake_does_not_look_for_jobs_all_the_time(work, finished):
    """It would, once a second and more often with each step that ends: most of a core, at the end of the study."""
    target = resolve(f"datasets.{RUNS[1]}", [], work.configs, seed=1)
    options = Namespace(command="run", profile="local", configs=work.configs, directory=work.made)
    command = snakemake(target, options, ["--force"])
    arguments = command[command.index("snakemake") + 1 :]
    done = subprocess.run([sys.executable, "-c", TIMERS, *arguments], cwd=ROOT, capture_output=True, text=True)
    assert "steps (100%) done" in done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_a_number_that_is_none(work):
    assert work.call("plan", "mine-en-de", GPUS="x", code=1) == "error: GPUS is a number, not x\n"


def test_a_file_that_is_not_there_is_asked_for(work, tmp_path):
    plan = work.call("plan", "mine-en-de", "--directory", str(tmp_path))
    assert f"first, put mine/text.en in place, as {tmp_path}/data/downloads/mine/text.en: my own file" in plan
    out = work.call("run", "mine-en-de", "--directory", str(tmp_path), code=1)
    assert "mine/text.en cannot be downloaded. my own file" in out
    assert f"Put it here: {tmp_path}/data/downloads/mine/text.en" in out
    assert not (tmp_path / "experiments").exists()
