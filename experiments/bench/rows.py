"""What `make bench` measures, as data. `python -m experiments.bench --list` shows it; a row can be measured alone.

Texts are named in texts.py. Where `learned_on` names another text, merges and dictionary come from that one: the text
itself is of another domain, and has many words that were never seen.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from .texts import AS_IT_IS, ENGLISH, MADE, TEXTS
from .work import RULE

LANGUAGES = {
    "en": "English",
    "de": "German",
    "ende": "English and German",
    "ja": "unsegmented Japanese",
    "zh": "unsegmented Chinese",
}
WORK = {
    "resegment": "resegment a loaded corpus, p = {p:g}, {language}",
    "rule": "resegment a loaded corpus by a rule, {rule}, {language}",
    "threads": "the same on two threads, {language}",
    "ids": "text in, ids out, p = {p:g}, {language}",
    "plain": "text in, text out, p = 0, {language}",
    "line": "`Segmenter.segment` of a line, p = {p:g}, {language}",
    "learn": "learn {merges} merges, {language}",
    "load": "load a corpus, ready to draw",
    "tokenizer": "resegment with a byte-level tokenizer of {merges} merges, p = {p:g}, {language}",
}
# What a tool does where that is not the same work.
THEIRS = {
    ("line", "YouTokenToMe"): "YouTokenToMe's `encode` of a line to ids",
    ("line", "YouTokenToMe, pieces"): "YouTokenToMe's `encode` of a line to pieces",
    ("load", "YouTokenToMe"): "one pass of YouTokenToMe",
    ("threads", "bpe-dropout"): "one thread",
    ("rule", "bpe-dropout, a number"): "p = 0.1 for every merge",
    ("tokenizer", "tokenizers"): "tokenizers' own dropout",
}
OURS = "bpe-dropout"
ALL_TOOLS = ("YouTokenToMe", "tokenizers", "sentencepiece", "pyonmttok", "subword-nmt")


@dataclass(frozen=True)
class Row:
    name: str
    work: str
    text: str
    merges: int
    against: tuple[str, ...] = ("YouTokenToMe",)
    p: float = 0.1
    learned_on: str = ""  # another text; else the text itself
    least: tuple[float, ...] = ()  # for each tool
    aim: tuple[float, ...] = ()
    turns: int = 7

    @property
    def source(self) -> str:
        """The text that merges and dictionary come from."""
        return self.learned_on or self.text

    @property
    def is_made(self) -> bool:
        return self.text in MADE

    @property
    def title(self) -> str:
        return WORK[self.work].format(p=self.p, rule=RULE, merges=self.merges, language=self.language)

    @property
    def language(self) -> str:
        return LANGUAGES[(MADE | TEXTS)[self.text].language]

    def opponent(self, tool: str) -> str:
        return THEIRS.get((self.work, tool), tool)


def resegment(language: str, text: str, merges: int, *held_out: str, p: float, least: float, aim: float) -> list[Row]:
    """A text, and texts of other domains with the merges of the first."""
    first = Row(f"resegment-{language}", "resegment", f"{text}.{language}", merges, p=p, least=(least,), aim=(aim,))
    return [first, *(of_another_domain(first, f"{other}.{language}") for other in held_out)]


def of_another_domain(row: Row, text: str) -> Row:
    """
    >>> row = of_another_domain(Row("plain-en", "plain", "multi30k.en", 4000), "news.en")
    >>> row.name, row.text, row.source
    ('plain-en-news', 'news.en', 'multi30k.en')
    """
    domain = text.removeprefix(AS_IT_IS).split(".")[0]
    return replace(row, name=f"{row.name}-{domain}", text=text, learned_on=row.source)


_IDS = Row("ids-en", "ids", "tatoeba.en", 8000, least=(6,), aim=(10,))
_PLAIN = Row("plain-en", "plain", "tatoeba.en", 8000, ("subword-nmt",), p=0, least=(25,), aim=(40,))
_LINE = Row("line-en", "line", "multi30k.en", 4000, ("YouTokenToMe", "YouTokenToMe, pieces"), least=(1, 1), aim=(2, 2))
_TOKENIZER = Row("tokenizer-16k", "tokenizer", AS_IT_IS + "tatoeba.en", 16000, ("tokenizers",), least=(30,), aim=(60,))
_LARGE_TOKENIZER = replace(_TOKENIZER, name="tokenizer-50k", merges=50000, learned_on=ENGLISH)

ROWS = (
    *resegment("en", "multi30k", 4000, "news", "tatoeba", p=0.1, least=20, aim=30),
    *resegment("de", "multi30k", 4000, "news", "software", p=0.1, least=20, aim=30),
    Row("threads-de", "threads", "multi30k.de", 4000, (OURS,), least=(1.7,), aim=(1.9,)),
    Row("rule-en", "rule", "multi30k.en", 4000, (f"{OURS}, a number",), least=(0.8,), aim=(1,)),
    *resegment("ja", "tatoeba", 16000, "software", p=0.6, least=6, aim=10),
    *resegment("zh", "tatoeba", 8000, "software", p=0.6, least=6, aim=10),
    _IDS,
    of_another_domain(_IDS, "news.en"),
    Row("ids-de", "ids", "tatoeba.de", 8000, least=(6,), aim=(10,)),
    _PLAIN,
    of_another_domain(_PLAIN, "news.en"),
    _LINE,
    of_another_domain(_LINE, "news.en"),
    Row("learn-en", "learn", "multi30k.en", 8000, ("subword-nmt", "YouTokenToMe"), least=(50, 1), aim=(50, 2), turns=3),
    Row("learn-ja", "learn", "tatoeba.ja", 2000, ("subword-nmt", "YouTokenToMe"), least=(50, 1), aim=(50, 2), turns=3),
    _TOKENIZER,
    of_another_domain(_TOKENIZER, AS_IT_IS + "news.en"),
    _LARGE_TOKENIZER,
    Row("ids-million", "ids", "made.1000000", 8000, learned_on="both.ende", least=(6,), aim=(10,), turns=3),
    Row("learn-zh-large", "learn", "made.zh.200000", 16000, least=(1,), aim=(2,), turns=1),
    Row("learn-million", "learn", "made.4500000", 32000, least=(1,), aim=(2,), turns=1),
    Row("load-million", "load", "made.4500000", 8000, learned_on="both.ende", least=(1,), aim=(3,), turns=1),
)
BY_NAME = {row.name: row for row in ROWS}
# Every tool by itself: its speed, and how much longer dropout makes the text.
TOOLS = {
    **{f"tools-{language}": (BY_NAME[f"resegment-{language}"], ALL_TOOLS) for language in ("en", "de", "ja")},
    **{f"tools-{name}": (BY_NAME[name], ("tokenizers",)) for name in ("tokenizer-16k", "tokenizer-50k")},
}
SCALING = "scaling"  # 1, 2 and 4 times the text
TRAINING = ("loader", "training", "memory", "large")  # training.py
NAMES = (*BY_NAME, *TOOLS, SCALING, *TRAINING)
