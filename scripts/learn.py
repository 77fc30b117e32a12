"""Learns a vocabulary of a given size from words: python -m scripts.learn WORDS --vocabulary 4000 --output FILE

What is learned, merges or a unigram model, is the method's own (bpe_dropout/methods). Writes beside FILE how large the
vocabulary became, as FILE.json.
"""

from __future__ import annotations

from pathlib import Path

from bpe_dropout.cores import count_cores
from bpe_dropout.methods import METHODS, Method

from .stage import Reporter, Stage, write_json


def main() -> None:
    stage = Stage(__doc__)
    stage.add_argument("words", type=Path, metavar="WORDS", help="training text, prepared")
    stage.add_argument("--kind", choices=list(METHODS), default="bpe", help="the method (default: %(default)s)")
    stage.add_argument("--vocabulary", type=int, required=True, metavar="N", help="how many pieces")
    stage.add_argument("--output", required=True, type=Path, metavar="FILE", help="codes or model")
    stage.add_argument("--threads", type=int, default=count_cores(), metavar="N", help="(default: all cores)")
    options = stage.parse_args()
    learn(METHODS[options.kind], options.words, options.vocabulary, options.output, options.threads)


def learn(method: Method, words: Path, vocabulary: int, output: Path, threads: int) -> None:
    output.parent.mkdir(parents=True, exist_ok=True)
    print(f"learning {vocabulary} pieces ({method.name}) from {words}", flush=True)
    report = Reporter()
    made = method.learn(words, vocabulary, output, threads, report)
    report.clear()
    write_json(output.with_name(output.name + ".json"), {"asked for": vocabulary, **made})
    print(f"{output}: " + ", ".join(f"{number} {name}" for name, number in made.items()), flush=True)


if __name__ == "__main__":
    main()
