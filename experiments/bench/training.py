"""What resegmenting costs a fairseq training, against stock fairseq on binarized text: rows of `make bench`.

training    the real fairseq-train, a small Transformer on two cores, at p = 0 with identical batches, and at p = 0.1
loader      batches alone, no model, no workers: tokens a second, at p = 0 and p = 0.1, against the memory-mapped
            dataset of stock fairseq
memory      fairseq-train as the reproduction starts it on a CPU, keeping the memory of tensors for the next ones
            (scripts/devices.py), against the same without
large       4.5 million pairs with about a million word types a side, text made for scale: the time to start, the time
            to turn an epoch against stock fairseq's own rebuilding of its batches, and the memory of two processes

Makes data/bench/fairseq/.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from time import perf_counter, process_time
from types import MappingProxyType
from typing import Any

from bpe_dropout import InputError
from scripts.devices import KEEP_MEMORY

from .texts import BOTH, FOLDER, ROOT, codes_path, facts_of, make, make_large, say, text_path, title_of

BIN = Path(sys.executable).parent
PLUGIN = ["--user-dir", str(ROOT / "fairseq_plugins"), "--bpe", "bpe_dropout"]
PLAIN = [*PLUGIN, "--bpe-dropout-src", "0", "--bpe-dropout-tgt", "0"]
MODEL = [
    "--arch", "transformer", "--encoder-embed-dim", "128", "--decoder-embed-dim", "128", "--encoder-ffn-embed-dim",
    "256", "--decoder-ffn-embed-dim", "256", "--encoder-layers", "2", "--decoder-layers", "2",
    "--encoder-attention-heads", "4", "--decoder-attention-heads", "4", "--optimizer", "adam", "--lr", "0.001",
    "--seed", "1", "--cpu", "--no-progress-bar", "--log-format", "json", "--log-interval", "100000",
    "--no-save", "--disable-validation", "--max-tokens", "4096", "--num-workers", "1",
]  # fmt: skip


def measure(name: str, quick: bool) -> dict[str, Any]:
    os.environ["OMP_NUM_THREADS"] = "1"
    if name == "large":
        return bench_large(450_000 if quick else 4_500_000)
    words, binarized = make_folders()
    if name == "loader":
        return {"results": bench_loader(words, binarized, 2 if quick else 5)}
    updates, turns = (10, 1) if quick else (40, 4)
    if name == "memory":
        return {"results": bench_memory(words, updates, turns)}
    return {"results": bench_training(words, binarized, updates, turns)}


def run(*command: object, environment: Mapping[str, str] = MappingProxyType({})) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env={**os.environ, **environment})
    if done.returncode:
        raise InputError(f"{' '.join(map(str, command))} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout + done.stderr


def make_folders() -> tuple[Path, Path]:
    """Multi30k as a data folder, and as stock fairseq has it."""
    texts = {language: text_path(f"multi30k.{language}") for language in ("en", "de")}
    codes = codes_path(BOTH, 4000)
    folder = FOLDER / "fairseq"
    folder.mkdir(exist_ok=True)
    pair = ["--source-lang", "en", "--target-lang", "de"]

    def words(path: Path) -> None:
        for language, text in texts.items():
            shutil.copyfile(text, folder / f"train.{language}")
        run(sys.executable, "-m", "bpe_dropout", "data", *pair, "--trainpref", folder / "train", "--codes", codes,
            "--destdir", path)  # fmt: skip

    def binarized(path: Path) -> None:
        for language, text in texts.items():
            run(BIN / "subword-nmt", "apply-bpe", "-c", codes, "-i", text, "-o", folder / f"bpe.{language}")
        run(BIN / "fairseq-preprocess", *pair, "--trainpref", folder / "bpe", "--destdir", path, "--workers", 2)

    return make(folder / "words", words), make(folder / "binarized", binarized)


def bench_training(words: Path, binarized: Path, updates: int, turns: int) -> list[dict[str, Any]]:
    say(f"training, {updates} updates, {turns} turns")
    rates: dict[str, list[float]] = {"stock": [], "plain": [], "dropout": []}
    losses: dict[str, float] = {}
    for _ in range(turns):
        for name, data, options in (("stock", binarized, []), ("plain", words, PLAIN), ("dropout", words, PLUGIN)):
            rate, losses[name] = train(data, *options, "--max-update", updates)
            rates[name].append(rate)
    if abs(losses["plain"] - losses["stock"]) > 1e-3:
        raise InputError(f"the losses differ, so the batches do: {losses}")
    faster = {
        name: [mine / stock for mine, stock in zip(rates[name], rates["stock"], strict=True)]
        for name in ("plain", "dropout")
    }
    against = "stock fairseq, binarized"
    return [
        result("training at p = 0, identical batches, words a second", against, faster["plain"], least=0.98),
        result("training at p = 0.1, words a second", against, faster["dropout"]),
    ]


def bench_memory(words: Path, updates: int, turns: int) -> list[dict[str, Any]]:
    say(f"training with memory kept, {updates} updates, {turns} turns")
    faster = []
    for _ in range(turns):
        (plain, loss), (kept, same) = (
            train(words, *PLUGIN, "--max-update", updates, environment=environment) for environment in ({}, KEEP_MEMORY)
        )
        if loss != same:
            raise InputError(f"the losses differ: {loss} and {same}")
        faster.append(kept / plain)
    work = "training at p = 0.1 with memory kept for the next tensor, words a second"
    return [result(work, "fairseq-train as it is", faster, least=1)]


def train(*options: object, environment: Mapping[str, str] = MappingProxyType({})) -> tuple[float, float]:
    """Words a second, and the loss."""
    out = run(BIN / "fairseq-train", *options, *MODEL, environment=environment)
    log = json.loads(re.findall(r"\| train \| (.*)", out)[-1])
    return float(log["train_wps"]), float(log["train_loss"])


def result(
    work: str,
    against: str,
    wall: list[float],
    cpu: list[float] | None = None,
    *,
    text: str = "multi30k.en",
    facts: dict[str, Any] | None = None,
    least: float | str = "",
    unit: str = "times",
) -> dict[str, Any]:
    """As the rows of the segmenter have it; what is trained with is as fast as the clock says."""
    return {
        "work": work,
        "against": against,
        "text": title_of(text),
        "made": text != "multi30k.en",
        "facts": asdict(facts_of(text)) if facts is None else facts,
        "cpu": [round(ratio, 4) for ratio in cpu or ()],
        "wall": [round(ratio, 4) for ratio in wall],
        "counts": "wall",
        "unit": unit,
        "least": least,
        "aim": "",
    }


# In this process: the tasks as fairseq-train makes them.


def make_task(data: Path, *options: str) -> Any:
    from fairseq import options as fairseq_options
    from fairseq import tasks
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf

    parser = fairseq_options.get_training_parser()
    arguments = fairseq_options.parse_args_and_arch(parser, [str(data), *options, *MODEL])
    return tasks.setup_task(convert_namespace_to_omegaconf(arguments).task)


ASKED = {
    "max_tokens": 4096, "max_positions": (1024, 1024), "ignore_invalid_inputs": True, "required_batch_size_multiple": 8,
    "seed": 1, "update_epoch_batch_itr": True,
}  # fmt: skip


def training_iterator(task: Any, dataset: Any, epoch: int) -> Any:
    """As the trainer asks for it."""
    return task.get_batch_iterator(dataset, **ASKED, epoch=epoch)


def bench_loader(words: Path, binarized: Path, turns: int) -> list[dict[str, Any]]:
    """Tokens a second of an epoch, without the time that it takes to make its batches."""
    say("the loader alone")
    tasks, tokens = {}, {}
    for name, data, options in (("stock", binarized, PLUGIN[:2]), ("plain", words, PLAIN), ("dropout", words, PLUGIN)):
        tasks[name] = task = make_task(data, *options)
        task.load_dataset("train")
        loaded = training_iterator(task, task.dataset("train"), 1).next_epoch_itr(shuffle=True)
        tokens[name] = sum(int(batch["net_input"]["src_lengths"].sum()) + batch["ntokens"] for batch in loaded)
    rates: dict[str, list[tuple[float, float]]] = {name: [] for name in tasks}
    for _ in range(turns):
        for name, task in tasks.items():
            epoch = training_iterator(task, task.dataset("train"), 1).next_epoch_itr(shuffle=True)
            wall, cpu = perf_counter(), process_time()
            for _ in epoch:
                pass
            seconds = perf_counter() - wall, process_time() - cpu
            rates[name].append((tokens[name] / seconds[0], tokens[name] / seconds[1]))
    results = []
    for name, p in (("plain", "0"), ("dropout", "0.1")):
        wall, cpu = (
            [mine[time] / stock[time] for mine, stock in zip(rates[name], rates["stock"], strict=True)]
            for time in (0, 1)
        )
        work = f"the loader alone at p = {p}, tokens a second"
        results.append(result(work, "stock's memory-mapped dataset", wall, cpu, least=1))
    return results


def large(data: Path) -> None:
    """In a process of its own: starts, turns epochs, and says how long it took, beside stock fairseq's rebuilding."""
    import psutil
    from fairseq.data import LanguagePairDataset
    from fairseq.tasks import FairseqTask

    begin = perf_counter()
    task = make_task(data, *PLUGIN)
    task.load_dataset("train")
    iterator = training_iterator(task, task.dataset("train"), 1)
    iterator.first_batch  # noqa: B018
    start = perf_counter() - begin
    turns, alone, rebuilt = [], [], []
    for epoch in (2, 3, 4):
        drawn = iterator.dataset
        begin = perf_counter()
        drawn.draw_ahead()  # as the task has it when an epoch begins; then the epoch is trained
        drawn._ahead._thread.join()
        alone.append(perf_counter() - begin)
        begin = perf_counter()
        iterator = training_iterator(task, task.dataset("train"), epoch)
        turns.append(perf_counter() - begin)
        stock = LanguagePairDataset(
            range(len(drawn)), drawn.src_sizes, task.src_dict, range(len(drawn)), drawn.tgt_sizes, task.tgt_dict
        )
        begin = perf_counter()
        FairseqTask.get_batch_iterator(task, stock, **ASKED, epoch=epoch)
        rebuilt.append(perf_counter() - begin)
        del stock
    print("done", flush=True)
    sys.stdin.readline()  # until all processes have come so far
    memory = psutil.Process().memory_full_info()
    types = [len(side.texts[0].corpus.counts) for side in drawn._texts]
    measured = {"start": start, "turn": min(turns), "aside": min(alone), "rebuilt": min(rebuilt)}
    print(json.dumps({**measured, "own": memory.uss, "share": memory.pss, "pairs": len(drawn), "types": types}))


def run_large(data: Path, count: int) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "experiments.bench.training", str(data)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    processes = [subprocess.Popen(command, **pipes) for _ in range(count)]
    for process in processes:
        while (line := process.stdout.readline()) != "done\n":
            if not line:
                raise InputError(f"{' '.join(command)} failed")
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    measured = [json.loads(process.stdout.readline()) for process in processes]
    for process in processes:
        process.communicate()
    return measured


def bench_large(lines: int) -> dict[str, Any]:
    codes = codes_path(BOTH, 8000)
    folder = FOLDER / "fairseq"
    folder.mkdir(exist_ok=True)
    texts = {language: make_large(lines, 1_000_000, seed) for language, seed in (("en", 1), ("de", 2))}

    def write(path: Path) -> None:
        for language, text in texts.items():
            (folder / f"large.{language}").unlink(missing_ok=True)
            (folder / f"large.{language}").symlink_to(text)
        run(sys.executable, "-m", "bpe_dropout", "data", "-s", "en", "-t", "de", "--trainpref", folder / "large",
            "--codes", codes, "--destdir", path, "--threshold", 2)  # fmt: skip

    data = make(folder / f"large.{lines}", write)
    for index in data.glob("*.words"):
        index.unlink()
    say(f"{lines / 1e6:g} million pairs, text not yet read")
    (cold,) = run_large(data, 1)
    say("the same once more, nothing changed")
    (warm,) = run_large(data, 1)
    say("the same in two processes at once")
    both = run_large(data, 2)
    most = {what: max(one[what] for one in both) for what in ("start", "turn", "own", "share")}
    pairs, types = f"{cold['pairs'] / 1e6:g} million pairs", " and ".join(map(str, cold["types"]))
    turning = result(
        f"turning an epoch of {pairs} with {types} word types",
        "stock fairseq's rebuilding of its batches",
        [cold["turn"] / cold["rebuilt"], warm["turn"] / warm["rebuilt"]],
        text="made.4500000",
        facts={},
        least="at most 2",
        unit="times the time",
    )
    note = (
        f"The same {pairs}: ready to train after {cold['start']:.0f} s the first time, when the text is read, and "
        f"after {warm['start']:.0f} s later (two processes at once on two cores: {most['start']:.0f} s), without the "
        f"time that it takes to import fairseq; an epoch turns in {cold['turn']:.1f} s (two at once: "
        f"{most['turn']:.1f} s), since its lengths were drawn beside the training of the one before, which took two "
        f"cores {cold['aside']:.1f} s. Each of the two processes has {most['own'] / 1e9:.1f} GB of its own, and with "
        f"its part of what they share {most['share'] / 1e9:.1f} GB."
    )
    return {"results": [turning], "note": note}


if __name__ == "__main__":
    large(Path(sys.argv[1]))
