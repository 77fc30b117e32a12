"""Learns a vocabulary of a given size from words: python -m scripts.learn WORDS --vocabulary 4000 --output FILE

bpe      merges of subword-nmt, as many as give a text of at most that many different pieces. (A number of merges is
         not a size: the characters come on top, and pieces that are merged away go.)
unigram  a unigram model of sentencepiece with that many pieces, for Kudo's subword regularization. Its text is taken
         as it is (no normalisation, all characters), so both methods see the same text.

Writes beside FILE how large the vocabulary became, as FILE.json.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from bpe_dropout import Codes, InputError, Segmenter
from bpe_dropout.files import whole
from bpe_dropout.learning import count_words, learn
from fairseq_plugins.vocabulary import count_pieces, read_corpus

from .stage import Reporter, Stage, write_json

SENTENCES = 5_000_000  # that sentencepiece learns from, at most: it keeps them in memory


def main() -> None:
    stage = Stage(__doc__)
    stage.add_argument("words", type=Path, metavar="WORDS", help="training text, prepared")
    stage.add_argument("--kind", choices=("bpe", "unigram"), default="bpe", help="(default: %(default)s)")
    stage.add_argument("--vocabulary", type=int, required=True, metavar="N", help="how many pieces")
    stage.add_argument("--output", required=True, type=Path, metavar="FILE", help="codes or model")
    stage.add_argument("--threads", type=int, default=os.cpu_count(), metavar="N", help="(default: all cores)")
    options = stage.parse_args()
    options.output.parent.mkdir(parents=True, exist_ok=True)
    learn = learn_bpe if options.kind == "bpe" else learn_unigram
    made = learn(options.words, options.vocabulary, options.output, options.threads)
    write_json(options.output.with_name(options.output.name + ".json"), {"asked for": options.vocabulary, **made})
    print(f"{options.output}: " + ", ".join(f"{number} {name}" for name, number in made.items()), flush=True)


def learn_bpe(words: Path, vocabulary: int, output: Path, threads: int) -> dict[str, int]:
    corpus = read_corpus(words)
    most = vocabulary * 5 // 4  # pieces that are merged away make room for more merges than pieces
    print(f"learning up to {most} merges from {words}", flush=True)
    report = Reporter()
    learned = learn(count_words(words), most, progress=report.counting(output.name, "merges"))
    report.clear()

    def first(number: int) -> Codes:
        return Codes(learned.pairs[:number])

    def pieces(number: int) -> int:
        return len(count_pieces(Segmenter(first(number)), corpus))

    number = choose_merges(pieces, len(learned.pairs), vocabulary)
    size = pieces(number)
    if size > vocabulary:
        raise InputError(
            f"{words}: its characters alone make a vocabulary of {size} pieces, more than the {vocabulary} asked for"
        )
    with whole(output) as part:
        part.write_bytes(first(number).text().encode())
    return {"pieces": size, "merges": number}


def choose_merges(pieces: Callable[[int], int], most: int, vocabulary: int) -> int:
    """How many of the first merges give at most so many pieces; pieces(n) grows with n, but for single steps.

    >>> choose_merges(lambda merges: 30 + merges, most=100, vocabulary=100)
    70
    """
    low, high = 1, most
    while low < high:
        middle = (low + high + 1) // 2
        if pieces(middle) <= vocabulary:
            low = middle
        else:
            high = middle - 1
    return low


def learn_unigram(words: Path, vocabulary: int, output: Path, threads: int) -> dict[str, int]:
    import sentencepiece

    lines, longest = 0, 0
    with words.open("rb") as file:
        for line in file:
            lines, longest = lines + 1, max(longest, len(line))
    with tempfile.TemporaryDirectory(dir=output.parent) as folder:
        prefix = Path(folder) / "unigram"
        print(f"learning a unigram model of {vocabulary} pieces from {words}", flush=True)
        try:
            sentencepiece.SentencePieceTrainer.train(
                input=str(words),
                model_prefix=str(prefix),
                model_type="unigram",
                vocab_size=vocabulary + 1,  # the unknown piece is one of them
                normalization_rule_name="identity",
                character_coverage=1.0,
                max_sentence_length=longest + 1,
                input_sentence_size=SENTENCES if lines > SENTENCES else 0,
                shuffle_input_sentence=lines > SENTENCES,
                hard_vocab_limit=False,
                bos_id=-1,
                eos_id=-1,
                num_threads=threads,
                minloglevel=1,
            )
        except RuntimeError as error:
            raise InputError(f"{words}: sentencepiece cannot learn {vocabulary} pieces of it: {error}") from None
        model = sentencepiece.SentencePieceProcessor(model_file=f"{prefix}.model")
        os.replace(f"{prefix}.model", output)
    return {"pieces": model.get_piece_size() - 1}


if __name__ == "__main__":
    main()
