"""What is timed: each kind of work, as each tool does it.

A function here gets a job, makes ready what is not timed, and returns what is: a call that gives the number of ids,
pieces or merges that were made. Models that a tool learns itself are kept beside the text's other files.

The functions of bpe-dropout use its public interface only, since they also run with the package of another commit.
"""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

Call = Callable[[], int]
LINES = 2000  # that are given one by one
RULE = "frequency:0..0.46"  # with about as many pieces as p = 0.1
BLOCK = 100_000  # lines at a time, of a text that is too large for YouTokenToMe at once


@dataclass(frozen=True)
class Job:
    """A kind of work on a text, with merges that were learned on another one, or on the same."""

    tool: str
    work: str
    text: str
    learned_on: str
    codes: str
    merges: int
    p: float
    lines: int | None = None  # only the first of the text
    threads: int = 1

    @property
    def model(self) -> Path:
        """Where a tool keeps what it has learned."""
        return Path(self.codes + "." + self.tool.split(",")[0])

    def read(self) -> list[str]:
        return Path(self.text).read_bytes().decode().removesuffix("\n").split("\n")[: self.lines]


# bpe-dropout


def resegment(job: Job, dropout: str | None = None) -> Call:
    from bpe_dropout import Corpus, Segmenter

    segmenter, corpus, epochs = Segmenter.from_codes(job.codes), Corpus(job.text), count(1)
    sampler = corpus.sampler(segmenter, plain_dictionary(job), dropout or job.p)
    chosen = None if job.lines is None else range(min(job.lines, len(corpus)))
    return lambda: len(sampler.tokens(chosen, seed=1, epoch=next(epochs), threads=job.threads).ids)


def rule(job: Job) -> Call:
    return resegment(job, RULE)


def ids(job: Job) -> Call:
    from bpe_dropout import Segmenter

    segmenter, dictionary = Segmenter.from_codes(job.codes), plain_dictionary(job)
    return lambda: len(segmenter.stream(job.p, dictionary=dictionary).ids(Path(job.text).read_bytes(), 1)[0])


def plain(job: Job) -> Call:
    from bpe_dropout import Segmenter

    segmenter = Segmenter.from_codes(job.codes)
    return lambda: len(segmenter.stream().text(Path(job.text).read_bytes()))


def line(job: Job) -> Call:
    from bpe_dropout import Segmenter

    segmenter, lines = Segmenter.from_codes(job.codes), job.read()[:LINES]
    return lambda: sum(len(segmenter.segment(one, job.p)) for one in lines)


def learn(job: Job) -> Call:
    from bpe_dropout.learning import count_words
    from bpe_dropout.learning import learn as learn_merges

    return lambda: len(learn_merges(count_words(job.text), job.merges).pairs)


def load(job: Job) -> Call:
    from bpe_dropout import Corpus, Dictionary, Segmenter

    segmenter = Segmenter.from_codes(job.codes)

    def call() -> int:
        Path(job.text + ".words").unlink(missing_ok=True)
        return len(Corpus(job.text).sampler(segmenter, Dictionary({}, unk=3), job.p))

    return call


def only_load(job: Job) -> Call:
    from bpe_dropout import Corpus

    def call() -> int:
        Path(job.text + ".words").unlink(missing_ok=True)
        return len(Corpus(job.text))

    return call


def plain_dictionary(job: Job) -> Any:
    """The pieces of plain BPE of the text that the merges come from."""
    from bpe_dropout import Dictionary, Segmenter

    pieces: dict[str, int] = {}
    for piece in Segmenter.from_codes(job.codes).stream().text(Path(job.learned_on).read_bytes()).decode().split():
        pieces.setdefault(piece, 4 + len(pieces))
    return Dictionary(pieces, unk=3)


def tokenizer(job: Job) -> Call:
    from bpe_dropout import Corpus

    sampler, epochs = Corpus.from_tokenizer(job.text, job.codes).sampler(dropout=job.p), count(1)
    chosen = None if job.lines is None else range(min(job.lines, len(sampler)))
    return lambda: len(sampler.tokens(chosen, seed=1, epoch=next(epochs)).ids)


# The others


def youtokentome(job: Job) -> Call:
    bpe, lines = youtokentome_model(job), job.read()
    return lambda: sum(map(len, bpe.encode(lines, dropout_prob=job.p)))


def youtokentome_ids(job: Job) -> Call:
    bpe = youtokentome_model(job)
    return lambda: sum(map(len, bpe.encode(job.read(), dropout_prob=job.p)))


def youtokentome_line(job: Job) -> Call:
    import youtokentome

    bpe, lines = youtokentome_model(job), job.read()[:LINES]
    kind = youtokentome.OutputType.SUBWORD if job.tool.endswith("pieces") else youtokentome.OutputType.ID
    return lambda: sum(len(bpe.encode(one, output_type=kind, dropout_prob=job.p)) for one in lines)


def youtokentome_learn(job: Job) -> Call:
    import youtokentome

    characters = len(set("".join(job.read())) - {" "})
    size = job.merges + characters + 5  # its four symbols, and its mark of a word's beginning

    def call() -> int:
        youtokentome.BPE.train(data=job.text, model=f"{job.model}.again", vocab_size=size, n_threads=1)
        return job.merges

    return call


def youtokentome_blocks(job: Job) -> Call:
    bpe, lines = youtokentome_model(job), job.read()
    blocks = [lines[begin : begin + BLOCK] for begin in range(0, len(lines), BLOCK)]
    return lambda: sum(len(one) for block in blocks for one in bpe.encode(block, dropout_prob=job.p))


def youtokentome_model(job: Job) -> Any:
    import youtokentome

    code = "import sys, youtokentome; youtokentome.BPE.train(sys.argv[1], sys.argv[2], int(sys.argv[3]))"
    if not job.model.exists():
        command = [sys.executable, "-c", code, job.learned_on, f"{job.model}.part", str(job.merges)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        Path(f"{job.model}.part").rename(job.model)
    return youtokentome.BPE(str(job.model), n_threads=1)


def subword_nmt(job: Job) -> Call:
    bpe, lines = subword_nmt_bpe(job), job.read()
    return lambda: sum(len(bpe.process_line(one, job.p).split(" ")) for one in lines)


def subword_nmt_plain(job: Job) -> Call:
    bpe = subword_nmt_bpe(job)

    def call() -> int:
        bpe.cache = {}  # what it has segmented in the call before
        return len("\n".join(map(bpe.process_line, job.read())).encode())

    return call


def subword_nmt_bpe(job: Job) -> Any:
    from subword_nmt.apply_bpe import BPE

    with open(job.codes, encoding="utf-8", newline="\n") as file:
        return BPE(file)


def subword_nmt_learn(job: Job) -> Call:
    from subword_nmt.learn_bpe import learn_bpe

    def call() -> int:
        learned = io.StringIO()
        with open(job.text, encoding="utf-8", newline="\n") as text:
            learn_bpe(text, learned, job.merges)
        return learned.getvalue().count("\n") - 1

    return call


def tokenizers(job: Job) -> Call:
    from tokenizers import Tokenizer
    from tokenizers.models import BPE
    from tokenizers.pre_tokenizers import WhitespaceSplit

    lines = job.read()
    codes = Path(job.codes).read_bytes().decode().removesuffix("\n").split("\n")
    pairs = [tuple(one.split(" ")) for one in codes[1:]]
    characters = sorted(set(Path(job.learned_on).read_bytes().decode()) - {" ", "\n"})
    symbols = dict.fromkeys(["<unk>", *characters, *(c + "</w>" for c in characters), *map("".join, pairs)])
    vocabulary = {symbol: number for number, symbol in enumerate(symbols)}
    model = BPE(vocabulary, pairs, dropout=job.p or None, unk_token="<unk>", end_of_word_suffix="</w>")
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = WhitespaceSplit()
    return lambda: sum(len(encoding.ids) for encoding in tokenizer.encode_batch_fast(lines))


def tokenizers_tokenizer(job: Job) -> Call:
    from tokenizers import Tokenizer

    tokenizer, lines = Tokenizer.from_file(job.codes), job.read()
    tokenizer.model.dropout = job.p or None
    return lambda: sum(len(encoding.ids) for encoding in tokenizer.encode_batch_fast(lines))


def sentencepiece(job: Job) -> Call:
    import sentencepiece as spm

    if not job.model.exists():
        spm.SentencePieceTrainer.train(
            input=job.learned_on,
            model_prefix=str(job.model),
            vocab_size=job.merges,
            model_type="bpe",
            character_coverage=1.0,
            normalization_rule_name="identity",
            minloglevel=2,
        )
        Path(f"{job.model}.vocab").unlink()
        Path(f"{job.model}.model").rename(job.model)
    processor, lines = spm.SentencePieceProcessor(model_file=str(job.model)), job.read()
    sampling = {"enable_sampling": True, "nbest_size": -1} if job.p else {}
    return lambda: sum(map(len, processor.encode(lines, num_threads=1, alpha=job.p, **sampling)))


def pyonmttok(job: Job) -> Call:
    import pyonmttok

    lines = job.read()
    tokenizer = pyonmttok.Tokenizer("space", bpe_model_path=job.codes, bpe_dropout=job.p, no_substitution=True)
    return lambda: sum(map(len, tokenizer.tokenize_batch(lines, training=True)[0]))


READY: dict[tuple[str, str], Callable[[Job], Call]] = {
    ("bpe-dropout", "resegment"): resegment,
    ("bpe-dropout", "threads"): resegment,
    ("bpe-dropout", "rule"): rule,
    ("bpe-dropout, a number", "rule"): resegment,
    ("bpe-dropout", "ids"): ids,
    ("bpe-dropout", "plain"): plain,
    ("bpe-dropout", "line"): line,
    ("bpe-dropout", "learn"): learn,
    ("bpe-dropout", "load"): load,
    ("bpe-dropout", "only load"): only_load,
    ("bpe-dropout", "tokenizer"): tokenizer,
    ("YouTokenToMe", "resegment"): youtokentome,
    ("YouTokenToMe", "ids"): youtokentome_ids,
    ("YouTokenToMe", "line"): youtokentome_line,
    ("YouTokenToMe, pieces", "line"): youtokentome_line,
    ("YouTokenToMe", "learn"): youtokentome_learn,
    ("YouTokenToMe", "load"): youtokentome_blocks,
    ("subword-nmt", "resegment"): subword_nmt,
    ("subword-nmt", "plain"): subword_nmt_plain,
    ("subword-nmt", "learn"): subword_nmt_learn,
    ("tokenizers", "resegment"): tokenizers,
    ("tokenizers", "tokenizer"): tokenizers_tokenizer,
    ("sentencepiece", "resegment"): sentencepiece,
    ("pyonmttok", "resegment"): pyonmttok,
}
# Where a first call is not needed to be at full speed, and takes long.
NO_WARMING = {("subword-nmt", "learn"), ("YouTokenToMe", "load"), ("bpe-dropout", "load")}
