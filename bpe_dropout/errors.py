"""What is wrong with the user's input, as sentences: the file, the line, what to do."""

from __future__ import annotations

from numbers import Real


class InputError(ValueError):
    """Input that cannot be used. Its text is shown to the user as it is."""


class OutOfReach(InputError):
    """A word with too many segmentations for what is asked."""


class LineError(InputError):
    """A line of text that cannot be used. Its text begins with the line; the caller adds the file in front."""


class CarriageReturn(InputError):
    """A merge with a carriage return, which cannot be read from a codes file."""


class NoSuchSentence(InputError, IndexError):
    """A sentence that the corpus does not have."""

    def __init__(self, asked: object, sentences: int) -> None:
        super().__init__(f"no such sentence: {asked}; the corpus has {sentences}, numbered from 0")


class NoSuchWord(InputError, IndexError):
    """A number that no word of the corpus has."""

    def __init__(self, asked: object, words: int) -> None:
        super().__init__(f"no such word: {asked}; the corpus has {words} distinct words, numbered from 0")


def check_dropout(p: float) -> float:
    """p as a float from 0 to 1.

    >>> check_dropout(0.1)
    0.1
    >>> check_dropout(1.1)
    Traceback (most recent call last):
    bpe_dropout.errors.InputError: dropout is a probability from 0 to 1, not 1.1
    """
    if type(p) is float and 0 <= p <= 1:  # as nearly always
        return p
    if isinstance(p, bool) or not isinstance(p, Real) or not 0 <= p <= 1:
        raise InputError(f"dropout is a probability from 0 to 1, not {p}")
    return float(p)


def check_number(name: str, number: int, limit: int = 2**64, least: int = 0) -> int:
    """A whole number from the least to below the limit: seeds, epochs, sides, sentences."""
    if type(number) is int and least <= number < limit:  # as nearly always
        return number
    if isinstance(number, bool) or not hasattr(number, "__index__") or not least <= number < limit:
        raise InputError(f"{name} is a whole number from {least} to {limit - 1}, not {number!r}")
    return int(number)


def check_threads(threads: int) -> int:
    return check_number("the number of threads", threads, 1025, least=1)


def shorten(text: str) -> str:
    """How an error quotes a word or a line: one may have a million characters.

    >>> shorten("word"), shorten("a" * 1000)
    ("'word'", "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'... (1000 characters)")
    """
    return repr(text) if len(text) <= 80 else f"{text[:40]!r}... ({len(text)} characters)"


def encode(text: str) -> bytes:
    """UTF-8; an error if the text holds half a surrogate pair, which no file can."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise not_text(error) from None


def not_text(error: UnicodeEncodeError) -> InputError:
    return InputError(f"the text cannot be written as UTF-8: {error}")
