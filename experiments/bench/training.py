"""What resegmenting costs a fairseq training, against stock fairseq on binarized text: `make bench`.

Ratios between things measured in this one run, in turns, the best of several turns of each.

    python experiments/bench/training.py [--data FOLDER] [--quick]

Training    at p = 0, the real fairseq-train, a small Transformer on two cores, identical batches: words a second
Loader      batches alone, no model, no workers: tokens a second, at p = 0 and p = 0.1, against the memory-mapped
            dataset of stock fairseq
Large       4.5 million pairs with about a million word types a side, in two processes at once: the time to start,
            the time to turn an epoch against stock fairseq's own rebuilding of its batches, and memory

Reads and makes the texts of segmenter.py, and data/bench/fairseq/. Writes experiments/bench/training.md, and the same
into docs/speed.md and README.md (pages.py).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from time import perf_counter

os.environ["OMP_NUM_THREADS"] = "1"

from pages import write_table
from segmenter import (
    ROOT,
    WORK,
    both_languages,
    find_data,
    in_turns,
    machine,
    make,
    make_codes,
    make_large,
    make_text,
    markdown,
    say,
)  # fmt: skip

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


def run(*command: object) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"bench: {' '.join(map(str, command))} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout + done.stderr


def make_folders(data: Path) -> tuple[Path, Path]:
    """Multi30k as a data folder, and as stock fairseq has it."""
    texts = {language: make_text(language, data) for language in ("en", "de")}
    codes = make_codes("ende", both_languages())
    folder = WORK / "fairseq"
    folder.mkdir(exist_ok=True)
    pair = ["--source-lang", "en", "--target-lang", "de"]

    def words(path: Path) -> None:
        for language, text in texts.items():
            shutil.copyfile(text, folder / f"train.{language}")
        run(sys.executable, "-m", "fairseq_plugins", "data", *pair, "--trainpref", folder / "train", "--codes", codes,
            "--destdir", path)  # fmt: skip

    def binarized(path: Path) -> None:
        for language, text in texts.items():
            run(BIN / "subword-nmt", "apply-bpe", "-c", codes, "-i", text, "-o", folder / f"bpe.{language}")
        run(BIN / "fairseq-preprocess", *pair, "--trainpref", folder / "bpe", "--destdir", path, "--workers", 2)

    return make(folder / "words", words), make(folder / "binarized", binarized)


def bench_training(words: Path, binarized: Path, updates: int, turns: int) -> list[list[str]]:
    say(f"training, {updates} updates, {turns} turns")
    rates: dict[str, float] = {}
    losses: dict[str, float] = {}

    def train(name: str, data: Path, *options: str) -> None:
        out = run(BIN / "fairseq-train", data, *options, *MODEL, "--max-update", updates)
        log = json.loads(re.findall(r"\| train \| (.*)", out)[-1])
        rates[name] = max(rates.get(name, 0), float(log["train_wps"]))
        losses[name] = float(log["train_loss"])

    for _ in range(turns):
        train("stock", binarized)
        train("ours", words, *PLAIN)
    train("dropout", words, *PLUGIN)
    if abs(losses["ours"] - losses["stock"]) > 1e-3:
        sys.exit(f"bench: the losses differ, so the batches do: {losses}")
    against = "stock fairseq, binarized"
    return [
        row("training at p = 0, identical batches, words a second", against, rates["ours"] / rates["stock"], "0.98"),
        row("training at p = 0.1, words a second", against, rates["dropout"] / rates["stock"], ""),
    ]


def row(work: str, against: str, ratio: float, bound: str, unit: str = "times") -> list[str]:
    say(f"{work}: {ratio:.2f} {unit}")
    return [work, against, f"**{ratio:.2f}** {unit}", bound]


# In this process: the tasks as fairseq-train makes them.


def make_task(data: Path, *options: str) -> object:
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


def training_iterator(task: object, dataset: object, epoch: int) -> object:
    """As the trainer asks for it."""
    return task.get_batch_iterator(dataset, **ASKED, epoch=epoch)


def bench_loader(words: Path, binarized: Path, turns: int) -> list[list[str]]:
    say("the loader alone")

    def loader(data: Path, *options: str) -> tuple[object, int]:
        task = make_task(data, *options)
        task.load_dataset("train")
        iterator = training_iterator(task, task.dataset("train"), 1)
        loaded = iterator.next_epoch_itr(shuffle=True)
        tokens = sum(int(batch["net_input"]["src_lengths"].sum()) + batch["ntokens"] for batch in loaded)

        def once() -> None:
            fresh = training_iterator(task, task.dataset("train"), 1).next_epoch_itr(shuffle=True)
            started = perf_counter()
            for _ in fresh:
                pass
            once.seconds = min(once.seconds, perf_counter() - started)

        once.seconds = float("inf")
        return once, tokens

    measured = {
        "stock": loader(binarized, "--user-dir", PLUGIN[1]),
        "plain": loader(words, *PLAIN),
        "dropout": loader(words, *PLUGIN),
    }
    in_turns({name: once for name, (once, _) in measured.items()}, turns)
    rates = {name: tokens / once.seconds for name, (once, tokens) in measured.items()}
    against = f"stock's memory-mapped dataset ({rates['stock'] / 1e6:.2f} million)"
    return [
        row("the loader alone at p = 0, tokens a second", against, rates["plain"] / rates["stock"], "1"),
        row("the loader alone at p = 0.1, tokens a second", against, rates["dropout"] / rates["stock"], "1"),
    ]


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


def run_large(data: Path, count: int) -> list[dict]:
    command = [sys.executable, __file__, "--large", str(data)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    processes = [subprocess.Popen(command, **pipes) for _ in range(count)]
    for process in processes:
        while (line := process.stdout.readline()) != "done\n":
            if not line:
                sys.exit(f"bench: {' '.join(command)} failed")
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    measured = [json.loads(process.stdout.readline()) for process in processes]
    for process in processes:
        process.communicate()
    return measured


def bench_large(lines: int) -> tuple[list[list[str]], str]:
    codes = make_codes("large", both_languages())
    folder = WORK / "fairseq"
    texts = {language: make_large(lines, 1_000_000, seed) for language, seed in (("en", 1), ("de", 2))}

    def write(path: Path) -> None:
        for language, text in texts.items():
            (folder / f"large.{language}").unlink(missing_ok=True)
            (folder / f"large.{language}").symlink_to(text)
        run(sys.executable, "-m", "fairseq_plugins", "data", "-s", "en", "-t", "de", "--trainpref", folder / "large",
            "--codes", codes, "--destdir", path, "--threshold", 2)  # fmt: skip

    data = make(folder / f"large.{lines}", write)
    for index in data.glob("*.words"):
        index.unlink()
    say(f"{lines / 1e6:g} million pairs, text not yet read")
    (cold,) = run_large(data, 1)
    say("the same in two processes at once")
    warm = run_large(data, 2)
    pairs, types = f"{cold['pairs'] / 1e6:g} million pairs", " and ".join(map(str, cold["types"]))
    most = {what: max(one[what] for one in warm) for what in ("start", "turn", "own", "share")}
    rows = [
        row(
            f"turning an epoch of {pairs} with {types} word types",
            "stock fairseq's rebuilding of its batches",
            cold["turn"] / cold["rebuilt"],
            "at most 2",
            "times the time",
        )
    ]
    note = (
        f"The same {pairs}: ready to train after {cold['start']:.0f} s the first time, when the text is read, and "
        f"after {most['start']:.0f} s later, two processes at once on two cores; an epoch turns in "
        f"{cold['turn']:.1f} s (two at once: {most['turn']:.1f} s), since its lengths were drawn beside the training "
        f"of the one before, which took two cores {cold['aside']:.1f} s. Each of the two processes has "
        f"{most['own'] / 1e9:.1f} GB of its own, and with its part of what they share {most['share'] / 1e9:.1f} GB."
    )
    say(note)
    return rows, note


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with the text (default: data/bench/raw)")
    parser.add_argument("--quick", action="store_true", help="a tenth of the text and fewer turns; writes nothing")
    parser.add_argument("--large", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.large:
        return large(options.large)
    data = find_data(options.data)
    WORK.mkdir(parents=True, exist_ok=True)
    words, binarized = make_folders(data)
    rows = bench_loader(words, binarized, 2 if options.quick else 5)
    rows += bench_training(words, binarized, 10 if options.quick else 40, 1 if options.quick else 4)
    more, note = bench_large(450_000 if options.quick else 4_500_000)
    table = "\n\n".join(
        [
            f"Measured by `make bench` in one run on {machine()}, with fairseq-fixed {version('fairseq-fixed')}.",
            markdown(["work", "against", "measured", "at least"], rows + more),
            note,
        ]
    )
    print(table)
    if not options.quick:
        write_table("training", table)


if __name__ == "__main__":
    main()
