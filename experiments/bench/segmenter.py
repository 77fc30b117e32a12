"""How fast the segmenter is, against every public tool that has BPE-dropout: `make bench`.

Speeds are ratios between things measured in this one run, on one thread, in turns; the best of several
turns counts, since other work on a machine only ever makes things slower. Beside each tool's speed is the
length ratio that it really gives: how many more pieces with dropout p than without. Most are not exact.

    python experiments/bench/segmenter.py [--data FOLDER] [--quick]

Reads    FOLDER/multi30k/train.{en,de}.gz and FOLDER/tatoeba-enja/train.ja.gz, text as it was published
Makes    data/bench/            tokenized text, merge tables, models of the others, large texts
Writes   experiments/bench/segmenter.md, and the same into docs/speed.md and README.md (pages.py)
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from itertools import cycle
from pathlib import Path

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["OMP_NUM_THREADS"] = "1"

from pages import write_table

from bpe_dropout import Corpus, Dictionary, Segmenter

ROOT = Path(__file__).parents[2]
WORK = ROOT / "data" / "bench"
WHERE = (WORK / "raw", ROOT.parent / "shared" / "data")
TEXTS = {"en": "multi30k/train.en.gz", "de": "multi30k/train.de.gz", "ja": "tatoeba-enja/train.ja.gz"}
MERGES = {"en": 4000, "de": 4000, "ende": 4000, "ja": 16000, "large": 8000}
DROPOUT = {"en": 0.1, "de": 0.1, "ja": 0.6, "large": 0.1}
NO_DATA = """bench: there is no text to measure on. Put it under data/bench/raw, or name a folder with --data:
  multi30k/train.en.gz and multi30k/train.de.gz
      from https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw/
  tatoeba-enja/train.ja.gz
      Japanese sentences of Tatoeba (https://tatoeba.org/downloads), gzipped, a sentence a line"""


def say(text: str) -> None:
    print(f"bench: {text}", flush=True)


# Text and tables, made once and kept.


def find_data(named: Path | None) -> Path:
    """The folder with the text as it was published."""
    folders = [named] if named else WHERE
    data = next((folder for folder in folders if all((folder / path).exists() for path in TEXTS.values())), None)
    return data or sys.exit(NO_DATA)


def lines_of(path: Path) -> list[str]:
    lines = path.read_bytes().decode().split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def tokenize(job: tuple[str, list[str]]) -> list[str]:
    from sacremoses import MosesTokenizer

    language, lines = job
    tokenizer = MosesTokenizer(language)
    return [tokenizer.tokenize(line, return_str=True, escape=False).lower() for line in lines]


def make(path: Path, write: Callable[[Path], None]) -> Path:
    if not path.exists():
        say(f"making {path.relative_to(ROOT)}")
        part = path.with_name(path.name + ".part")
        write(part)
        part.rename(path)
    return path


def make_text(language: str, data: Path) -> Path:
    def write(path: Path) -> None:
        raw = gzip.decompress((data / TEXTS[language]).read_bytes()).decode().split("\n")[:-1]
        jobs = [(language, raw[i : i + 5000]) for i in range(0, len(raw), 5000)]
        with ProcessPoolExecutor() as pool:
            path.write_text("".join(f"{line}\n" for part in pool.map(tokenize, jobs) for line in part))

    return make(WORK / f"text.{language}", write)


def both_languages() -> Path:
    texts = [WORK / "text.en", WORK / "text.de"]
    return make(WORK / "text.ende", lambda path: path.write_bytes(b"".join(text.read_bytes() for text in texts)))


def make_large(lines: int, types: int, seed: int = 1) -> Path:
    """So many lines with about so many types: the real lines over and over, now and then a word of theirs put
    together from two, as German does. What is new in each line are long rare words, as in real text."""

    def write(path: Path) -> None:
        rng = random.Random(seed)
        real = [line.split() for line in lines_of(both_languages())]
        known = {word for line in real for word in line}
        parts = sorted(word for word in known if word.isalpha() and 3 <= len(word) <= 9)
        long_words = sum(len(word) > 4 for line in real for word in line) / len(real)
        rate = (types - len(known)) / (lines * long_words)
        with path.open("w") as file:
            for _, line in zip(range(lines), cycle(real), strict=False):
                words = [
                    rng.choice(parts) + rng.choice(parts) if len(word) > 4 and rng.random() < rate else word
                    for word in line
                ]
                file.write(" ".join(words) + "\n")

    return make(WORK / (f"large.{lines}" if seed == 1 else f"large.{lines}.{seed}"), write)


def make_codes(name: str, text: Path) -> Path:
    def write(path: Path) -> None:
        command = [sys.executable, "-m", "bpe_dropout", "learn", "-s", str(MERGES[name]), "-i", text, "-o", path]
        subprocess.run(command, check=True)

    return make(WORK / f"codes.{name}", write)


def plain_dictionary(segmenter: Segmenter, text: Path) -> Dictionary:
    pieces: dict[str, int] = {}
    for piece in segmenter.stream().text(text.read_bytes()).decode().split():
        pieces.setdefault(piece, 4 + len(pieces))
    return Dictionary(pieces, unk=3)


# The tools. Each is a function of (lines, p) that returns the number of pieces.


def youtokentome(name: str, text: Path, codes: Path) -> Callable[[list[str], float], int]:
    import youtokentome as yttm

    def write(path: Path) -> None:
        code = "import sys, youtokentome; youtokentome.BPE.train(sys.argv[1], sys.argv[2], int(sys.argv[3]))"
        command = [sys.executable, "-c", code, text, path, str(MERGES[name])]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    bpe = yttm.BPE(str(make(WORK / f"youtokentome.{name}", write)), n_threads=1)
    return lambda lines, p: sum(map(len, bpe.encode(lines, dropout_prob=p)))


def tokenizers(name: str, text: Path, codes: Path) -> Callable[[list[str], float], int]:
    from tokenizers import Tokenizer
    from tokenizers.models import BPE
    from tokenizers.pre_tokenizers import WhitespaceSplit

    pairs = [tuple(line.split(" ")) for line in lines_of(codes)[1:]]
    characters = sorted(set("".join(lines_of(text))) - {" "})
    symbols = dict.fromkeys(["<unk>", *characters, *(c + "</w>" for c in characters), *map("".join, pairs)])
    vocabulary = {symbol: number for number, symbol in enumerate(symbols)}

    def run(lines: list[str], p: float) -> int:
        model = BPE(vocabulary, pairs, dropout=p or None, unk_token="<unk>", end_of_word_suffix="</w>")
        tokenizer = Tokenizer(model)
        tokenizer.pre_tokenizer = WhitespaceSplit()
        return sum(len(encoding.ids) for encoding in tokenizer.encode_batch_fast(lines))

    return run


def sentencepiece(name: str, text: Path, codes: Path) -> Callable[[list[str], float], int]:
    import sentencepiece as spm

    def write(path: Path) -> None:
        spm.SentencePieceTrainer.train(
            input=str(text),
            model_prefix=str(path),
            vocab_size=MERGES[name],
            model_type="bpe",
            character_coverage=1.0,
            normalization_rule_name="identity",
            minloglevel=2,
        )
        Path(f"{path}.vocab").unlink()
        Path(f"{path}.model").rename(path)

    processor = spm.SentencePieceProcessor(model_file=str(make(WORK / f"sentencepiece.{name}", write)))
    sampling = {"enable_sampling": True, "nbest_size": -1}
    return lambda lines, p: sum(map(len, processor.encode(lines, num_threads=1, alpha=p, **(sampling if p else {}))))


def pyonmttok(name: str, text: Path, codes: Path) -> Callable[[list[str], float], int]:
    import pyonmttok

    def run(lines: list[str], p: float) -> int:
        tokenizer = pyonmttok.Tokenizer("space", bpe_model_path=str(codes), bpe_dropout=p, no_substitution=True)
        return sum(map(len, tokenizer.tokenize_batch(lines, training=True)[0]))

    return run


def subword_nmt(name: str, text: Path, codes: Path) -> Callable[[list[str], float], int]:
    from subword_nmt.apply_bpe import BPE

    def run(lines: list[str], p: float) -> int:
        with codes.open(encoding="utf-8", newline="\n") as file:
            bpe = BPE(file)
        return sum(len(bpe.segment(line, p).split(" ")) for line in lines)

    return run


PEERS = {
    "YouTokenToMe": youtokentome,
    "tokenizers": tokenizers,
    "sentencepiece": sentencepiece,
    "pyonmttok": pyonmttok,
    "subword-nmt": subword_nmt,
}


# Measuring.


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def in_turns(work: dict[str, Callable[[], object]], turns: int) -> dict[str, float]:
    """The best time of each, taken in turns."""
    best = dict.fromkeys(work, float("inf"))
    for _ in range(turns):
        for name, one in work.items():
            best[name] = min(best[name], seconds(one))
    return best


class Results:
    def __init__(self) -> None:
        self.goals: list[list[str]] = []
        self.tools: list[list[str]] = []
        self.scaling: list[list[str]] = []

    def goal(self, work: str, against: str, ratio: float, least: float, aim: float, unit: str = "times") -> None:
        shown = f"**{ratio:.1f}** {unit}" if ratio >= 3 else f"**{ratio:.2f}** {unit}"
        self.goals.append([work, against, shown, f"{least:g}", f"{aim:g}"])
        say(f"{work}: {ratio:.2f} {unit} ({against}); at least {least:g}, aim {aim:g}")


def bench_language(language: str, data: Path, results: Results, turns: int) -> None:
    text = make_text(language, data)
    codes = make_codes(language, text)
    p, lines = DROPOUT[language], lines_of(text)
    words = sum(len(line.split()) for line in lines)
    segmenter = Segmenter.from_codes(codes)
    corpus = Corpus(text)
    dictionary = plain_dictionary(segmenter, text)
    sampler = corpus.sampler(segmenter, dictionary, p)

    peers = {name: make_peer(language, text, codes) for name, make_peer in PEERS.items()}
    # The slow ones get fewer lines, and their speed is in words.
    few = lines[:3000]
    few_words = sum(len(line.split()) for line in few)
    plain = corpus.sampler(segmenter, dictionary).lengths(range(len(few)), seed=1, epoch=0).sum()
    our_ratio = sampler.lengths(range(len(few)), seed=1, epoch=0).sum() / plain
    say(f"{language}: every tool once, with its length ratio")
    rates, ratios = {}, {}
    for name, peer in peers.items():
        ratios[name] = peer(few, p) / peer(few, 0.0)
        rates[name] = few_words / seconds(lambda peer=peer: peer(few, p))
    fastest = sorted(rates, key=lambda name: -rates[name])[:2]
    say(f"{language}: in turns with {' and '.join(fastest)}")

    epochs = iter(range(1, 1_000_000))
    ours = 8  # epochs a turn, so that a turn is not too short to be timed
    work: dict[str, Callable[[], object]] = {name: lambda peer=peers[name]: peer(lines, p) for name in fastest}
    work["one"] = lambda: [sampler.tokens(seed=1, epoch=next(epochs)) for _ in range(ours)]
    if language == "de":
        work["two"] = lambda: [sampler.tokens(seed=1, epoch=next(epochs), threads=2) for _ in range(ours)]
    best = in_turns(work, turns)
    one = best["one"] / ours
    for name in fastest:
        rates[name] = words / best[name]
    fastest_name = max(fastest, key=lambda name: rates[name])
    ratio = words / one / rates[fastest_name]

    names = {"en": "English", "de": "German", "ja": "unsegmented Japanese"}
    least, aim = {"en": (15, 25), "de": (10, 20), "ja": (3, 6)}[language]
    results.goal(f"resegment a loaded corpus, p = {p:g}, {names[language]}", fastest_name, ratio, least, aim)
    if language == "de":
        results.goal("the same on two threads", "one thread", best["one"] / best["two"], 1.7, 1.9)

    ratios["**bpe-dropout**"], rates["**bpe-dropout**"] = our_ratio, words / one
    for name in sorted(rates, key=lambda name: -rates[name]):
        merges = "merges of its own" if name in ("YouTokenToMe", "sentencepiece") else "the same merges"
        speed, length = f"{rates[name] / 1e6:.2f}", f"{ratios[name]:.3f}"
        results.tools.append([names[language], f"p = {p:g}", name, speed, length, merges])


def bench_million(results: Results, lines: int, turns: int) -> None:
    text = make_large(lines, lines)
    codes = make_codes("large", both_languages())
    segmenter = Segmenter.from_codes(codes)
    dictionary = plain_dictionary(segmenter, both_languages())
    yttm = youtokentome("large", text, codes)
    what = f"{lines / 1e6:g} million lines"
    types = len(Corpus(text).counts)

    say(f"{what} with {types} types: text in, ids out")
    best = in_turns(
        {
            "ours": lambda: segmenter.stream(0.1, dictionary=dictionary).ids(text.read_bytes(), 1),
            "theirs": lambda: yttm(lines_of(text), 0.1),
        },
        turns,
    )
    results.goal(f"{what} of text in, ids out, p = 0.1", "YouTokenToMe", best["theirs"] / best["ours"], 3, 6)

    say(f"{what}: p = 0, text in, text out")
    from subword_nmt.apply_bpe import BPE

    def theirs() -> None:
        with codes.open(encoding="utf-8", newline="\n") as file:
            bpe = BPE(file)
        "\n".join(bpe.process_line(line) for line in lines_of(text)).encode()

    best = in_turns({"ours": lambda: segmenter.stream().text(text.read_bytes()), "theirs": theirs}, max(1, turns // 2))
    results.goal(f"{what}, p = 0, text in, text out", "subword-nmt's library", best["theirs"] / best["ours"], 15, 30)


LOAD = """
import json, resource, sys, time
from bpe_dropout import Corpus, Dictionary, Segmenter
text, codes = sys.argv[1:]
start = time.perf_counter()
corpus = Corpus(text)
sampler = corpus.sampler(Segmenter.from_codes(codes), Dictionary({}, unk=3), 0.1)
ready = time.perf_counter() - start
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
start = time.perf_counter()
lengths = sampler.lengths(seed=1, epoch=1)
print(json.dumps({"ready": ready, "memory": memory, "turn": time.perf_counter() - start, "types": len(corpus.counts)}))
"""


def bench_load(results: Results, lines: int) -> None:
    text = make_large(lines, 1_000_000)
    codes = make_codes("large", both_languages())
    text.with_name(text.name + ".words").unlink(missing_ok=True)
    say(f"{lines / 1e6:g} million lines: loading")
    loaded = subprocess.run([sys.executable, "-c", LOAD, text, codes], check=True, capture_output=True, text=True)
    ours = json.loads(loaded.stdout)
    say("the same, one pass of YouTokenToMe")
    yttm = youtokentome("large", text, codes)
    all_lines = lines_of(text)

    def blocks() -> Iterator[list[str]]:
        return (all_lines[i : i + 100_000] for i in range(0, len(all_lines), 100_000))

    theirs = seconds(lambda: [yttm(block, 0.1) for block in blocks()])
    results.goal(
        f"{lines / 1e6:g} million lines with {ours['types']} word types, loaded and ready",
        "one pass of YouTokenToMe",
        theirs / ours["ready"],
        1,
        3,
        f"times as fast, in {ours['memory'] / 1e9:.2f} GB",
    )


def bench_scaling(results: Results, lines: int, turns: int) -> None:
    """1, 2 and 4 times the text."""
    source = make_large(lines, 1_000_000)
    codes = make_codes("large", both_languages())
    segmenter = Segmenter.from_codes(codes)
    all_lines = source.read_bytes().splitlines(keepends=True)
    first: list[float] = []
    for factor in (1, 2, 4):
        part = b"".join(all_lines[: lines // 4 * factor])
        text = make(WORK / f"scaling.{lines}.{factor}", lambda path, part=part: path.write_bytes(part))
        index = text.with_name(text.name + ".words")

        def load(text: Path = text, index: Path = index) -> None:
            index.unlink(missing_ok=True)
            Corpus(text)

        load_time = in_turns({"load": load}, turns)["load"]
        sampler = Corpus(text).sampler(segmenter, Dictionary({}, unk=3), 0.1)
        turn = in_turns({"turn": lambda s=sampler: s.tokens(seed=1, epoch=1)}, turns)["turn"]
        first = first or [load_time, turn]
        results.scaling.append([f"{factor}", f"{load_time / first[0]:.2f}", f"{turn / first[1]:.2f}"])


def markdown(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in lines)


def report(results: Results) -> str:
    versions = ", ".join(
        f"{name} {version(name)}"
        for name in ("subword-nmt", "YouTokenToMe", "tokenizers", "sentencepiece", "pyonmttok")
    )
    return "\n\n".join(
        [
            f"Measured by `make bench` in one run, one thread unless said otherwise, on {machine()}; {versions}.",
            markdown(["work", "against", "measured", "at least", "aim"], results.goals),
            "Every tool by itself. The length ratio is what it really gives, on the first 3000 lines: pieces with "
            "dropout p, relative to its own without. With the same merges, another ratio is another distribution.",
            markdown(["text", "dropout", "tool", "million words a second", "length ratio", "merges"], results.tools),
            "How the time grows with the text:",
            markdown(["times the text", "times the time to load", "times the time of an epoch"], results.scaling),
        ]
    )


def processor() -> str:
    try:
        found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    except OSError:
        found = None
    return found[1] if found else platform.machine()


def machine() -> str:
    return f"{os.cpu_count()} cores of {processor()} with Python {platform.python_version()}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with the text (default: data/bench/raw)")
    parser.add_argument("--quick", action="store_true", help="a tenth of the text and fewer turns; writes nothing")
    options = parser.parse_args()
    data = find_data(options.data)
    WORK.mkdir(parents=True, exist_ok=True)
    results = Results()
    scale, turns = (10, 2) if options.quick else (1, 5)
    for language in TEXTS:
        bench_language(language, data, results, turns)
    bench_million(results, 1_000_000 // scale, 3)
    bench_load(results, 4_500_000 // scale)
    bench_scaling(results, 4_500_000 // scale, 3)
    table = report(results)
    print(table)
    if not options.quick:
        write_table("segmenter", table)


if __name__ == "__main__":
    main()
