"""Words of a text, as Moses' tokenizer.perl separates them, and text of words, as its detokenizer.perl joins them.

    "It's 3,000 people." -> It 's 3,000 people .
    「はい、３人です。」 -> 「 はい 、 ３人です 。 」

The rules are the script's own, in its order, as they have been since November 2018 (the full stop at the end of a line
is a word even after an abbreviation). sacremoses, Moses in Python, has another idea of what a letter is (for Chinese
and Japanese the full stop is one), and leaves the last full stop with an abbreviation. From it we take the lists of
abbreviations, the normalization of punctuation and the detokenizer. A language without a list of abbreviations
(Vietnamese, Arabic, Japanese) uses the English one, as in Moses.

An escape stands for one character that Moses keeps for itself: `&apos;` for `'`. Dropout would break it, so words are
not escaped (Moses: -no-escape), except for data folders that were made with escapes: a text with its escapes as single
characters and the text unescaped are the same text, with other names for 8 characters.

Left out: the colon within Finnish and Swedish words and the middle dot within Catalan ones, protected patterns,
hyphens (-a), the Penn treebank's rules.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from ..errors import InputError

# Perl's classes of characters: \p{IsAlnum} is [\p{Alphabetic}\p{Nd}], \p{IsAlpha} is \p{Alphabetic}, \p{IsN} is \p{N}.
_ALPHA = r"\p{Alphabetic}"
_APART = r"([^\p{Alphabetic}\p{Nd}\p{White_Space}.'`,\-])"
_COMMAS = ((r"([^\p{N}]),", r"\1 , "), (r",([^\p{N}])", r" , \1"), (r"(\p{N}),$", r"\1 ,"))
_QUOTE_ALONE = (rf"([^{_ALPHA}])'([^{_ALPHA}])", r"\1 ' \2")
_QUOTE_AFTER = (rf"([{_ALPHA}])'([^{_ALPHA}])", r"\1 ' \2")
_ENGLISH = (
    _QUOTE_ALONE,
    (rf"([^{_ALPHA}\p{{N}}])'([{_ALPHA}])", r"\1 ' \2"),
    _QUOTE_AFTER,
    (rf"([{_ALPHA}])'([{_ALPHA}])", r"\1 '\2"),  # it 's
    (r"(\p{N})'(s)", r"\1 '\2"),  # the 1990 's
)
_ROMANCE = (
    _QUOTE_ALONE,
    (rf"([^{_ALPHA}])'([{_ALPHA}])", r"\1 ' \2"),
    _QUOTE_AFTER,
    (rf"([{_ALPHA}])'([{_ALPHA}])", r"\1' \2"),  # l' eau
)
_APOSTROPHES = {"en": _ENGLISH, **dict.fromkeys(("fr", "it", "ga", "ca"), _ROMANCE)}
_NUMERIC_ONLY = "#NUMERIC_ONLY#"

ESCAPES = {
    "&": "&amp;",
    "|": "&#124;",
    "<": "&lt;",
    ">": "&gt;",
    "'": "&apos;",
    '"': "&quot;",
    "[": "&#91;",
    "]": "&#93;",
}
_ESCAPE = re.compile("|".join(map(re.escape, ESCAPES.values())))
_CHARACTERS = {escape: character for character, escape in ESCAPES.items()}

# What detokenizer.perl does not join: punctuation of Arabic, and that of Chinese and Japanese, on both of its sides.
_WIDE = r"[\u3001-\u303f\uff01-\uff64\uffe0-\uffe6“”·・]"
_EAST_ASIAN = rf" (?={_WIDE})|(?<={_WIDE}) "
_JOINED = {"ar": r" (?=[،؛؟٪])", "zh": _EAST_ASIAN, "ja": _EAST_ASIAN}


@cache
def tokenizer(language: str) -> Callable[[str], str]:
    """
    >>> tokenize = tokenizer("en")
    >>> tokenize('He said: "Mr. Smith\\'s house, 3,000 sq. m." And...')
    'He said : " Mr. Smith \\'s house , 3,000 sq. m . " And ...'
    """
    regex = module("regex")
    spaces, apart = regex.compile(r"\p{White_Space}+"), regex.compile(_APART)
    commas = [(regex.compile(pattern), made) for pattern, made in _COMMAS]
    quotes = [(regex.compile(pattern), made) for pattern, made in _APOSTROPHES.get(language, (("'", " ' "),))]
    letter, lower = regex.compile(_ALPHA), regex.compile(r"\p{Lowercase}")
    always, before_numbers = abbreviations(language)

    def ends_sentence(before: str, after: str) -> bool:
        """Whether the full stop after a word is one, and not part of an abbreviation."""
        if ("." in before and letter.search(before)) or before in always or lower.match(after):
            return False
        return not (before in before_numbers and after[0] in "0123456789")

    def tokenize(line: str) -> str:
        line = _CONTROLS.sub("", spaces.sub(" ", line)).strip(" ")
        line = apart.sub(r" \1 ", line)
        line = _DOTS.sub(r" \g<0> ", line)
        for expression, made in commas if "," in line else ():
            line = expression.sub(made, line)
        for expression, made in quotes if "'" in line else ():
            line = expression.sub(made, line)
        words = line.split()
        for i, word in enumerate(words):
            if word[-1] != "." or not word.strip("."):  # dots alone stay together
                continue
            if i == len(words) - 1 or ends_sentence(word[:-1], words[i + 1]):
                words[i] = f"{word[:-1]} ."
        return _LAST.sub(" . '", " ".join(words))

    return tokenize


_CONTROLS = re.compile(r"[\x00-\x1f]")
_DOTS = re.compile(r"\.{2,}")
_LAST = re.compile(r"\.'$")


@cache
def normalizer(language: str) -> Callable[[str], str]:
    """
    >>> normalizer("en")("a “word” – or two")
    'a "word" - or two'
    """
    normalize: Callable[[str], str] = module("sacremoses").MosesPunctNormalizer(language).normalize
    return normalize


def abbreviations(language: str) -> tuple[frozenset[str], frozenset[str]]:
    """Words whose full stop does not end a sentence: always (Mr.), and before a number (No. 5)."""
    lines = list(module("sacremoses.corpus").NonbreakingPrefixes().words(language))
    numeric = {line.removesuffix(_NUMERIC_ONLY).strip() for line in lines if line.endswith(_NUMERIC_ONLY)}
    return frozenset(lines) - numeric, frozenset(numeric)


@cache
def detokenizer(language: str) -> Callable[[str], str]:
    """
    >>> detokenizer("zh")("他说 ： “ 是 。 ”")
    '他说：“是。”'
    """
    moses = module("sacremoses").MosesDetokenizer(language)
    joined = re.compile(_JOINED[language]) if language in _JOINED else None

    def detokenize(words: str) -> str:
        text: str = moses.detokenize(words.split(), unescape=False)
        return joined.sub("", text) if joined else text

    return detokenize


def escape(words: str) -> str:
    """
    >>> escape("it 's"), unescape("it &apos;s")
    ('it &apos;s', "it 's")
    """
    return _ESCAPED.sub(lambda found: ESCAPES[found[0]], words)


def unescape(words: str) -> str:
    return _ESCAPE.sub(lambda found: _CHARACTERS[found[0]], words)


def escapes(words: str) -> list[str]:
    """
    >>> escapes("it &apos;s &quot; so & so ; &quot;")
    ['&apos;', '&quot;', '&quot;']
    """
    return _ESCAPE.findall(words) if "&" in words else []


_ESCAPED = re.compile(f"[{re.escape(''.join(ESCAPES))}]")


def module(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise InputError(
            f"text is prepared with sacremoses and regex, and {name} is not installed: pip install sacremoses regex"
        ) from None
