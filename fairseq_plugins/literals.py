"""What fairseq evaluates, read as data: `[(512, 3)] * 20 + [(768, 3)]` is a list of pairs, and a call is refused.

Numbers, text, True, False, None, and tuples, lists and dictionaries of them; +, - and * of numbers, + of two lists or
tuples, and * of one of them and a number. Nothing else, so that nothing can be run; and nothing large, so that nothing
takes long: `[1] * 10**10`, `9**9**9**9` and deep nesting are refused at once.
"""

from __future__ import annotations

import ast
from typing import Any

from bpe_dropout import InputError

LONGEST = 100_000  # characters of the text, and values that are made on the way
DEEPEST = 50
LARGEST = 2**63


class NotALiteral(InputError):
    """Text that is more than data."""


def evaluate(text: Any, *_: Any) -> Any:
    """Takes the place of `eval`; the names that a caller passes along are not looked at.

    >>> evaluate("[(512, 3)] * 2 + [(768, 3)]")
    [(512, 3), (512, 3), (768, 3)]
    """
    if not isinstance(text, str | bytes):
        raise TypeError(f"only text is evaluated, not {type(text).__name__}")  # as eval; fairseq relies on it
    if isinstance(text, bytes) or len(text) > LONGEST:
        raise refused(text)
    try:
        return Reader().value(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, TypeError, OverflowError, MemoryError, RecursionError):
        raise refused(text) from None


def refused(text: str | bytes) -> NotALiteral:
    return NotALiteral(
        f"fairseq would evaluate an option as Python: {text[:200]!r}. Only numbers, text, lists, tuples and "
        "dictionaries of moderate size are taken, and lists that are added or repeated"
    )


class Reader:
    """Values of expressions; ValueError if one is not a literal, or too large."""

    def __init__(self) -> None:
        self.left = LONGEST

    def value(self, node: ast.expr | None, depth: int = 0) -> Any:
        if depth > DEEPEST:
            raise ValueError("too deep")
        match node:
            case ast.Constant(value=bool() | int() | float() | str() | None as constant):
                found: Any = constant
            case ast.Tuple(elts=items):
                found = tuple(self.value(item, depth + 1) for item in items)
            case ast.List(elts=items):
                found = [self.value(item, depth + 1) for item in items]
            case ast.Dict(keys=keys, values=values):
                pairs = zip(keys, values, strict=True)
                found = {self.value(key, depth + 1): self.value(value, depth + 1) for key, value in pairs}
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                found = self.combine(0, ast.Sub(), self.value(operand, depth + 1))
            case ast.BinOp(left=left, op=operation, right=right):
                found = self.combine(self.value(left, depth + 1), operation, self.value(right, depth + 1))
            case _:
                raise ValueError("not a literal")
        self.spend(1)
        if is_number(found) and not -LARGEST <= found <= LARGEST:
            raise ValueError("too large")
        return found

    def combine(self, left: Any, operation: ast.operator, right: Any) -> Any:
        """left + right, left - right or left * right, if that is one of the few that are allowed."""
        match operation:
            case ast.Add() if is_number(left) and is_number(right):
                return left + right
            case ast.Sub() if is_number(left) and is_number(right):
                return left - right
            case ast.Mult() if is_number(left) and is_number(right):
                return left * right
            case ast.Add() if type(left) is type(right) and type(left) in (list, tuple):
                self.spend(size(left) + size(right))
                return left + right
            case ast.Mult() if isinstance(left, int) and isinstance(right, list | tuple):
                return self.combine(right, operation, left)
            case ast.Mult() if isinstance(left, list | tuple) and isinstance(right, int):
                self.spend(size(left) * max(1, right))
                return left * right
        raise ValueError("not a literal")

    def spend(self, values: int) -> None:
        self.left -= values
        if self.left < 0:
            raise ValueError("too large")


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def size(value: Any) -> int:
    """How many values it holds, itself counted."""
    if isinstance(value, dict):
        return 1 + sum(size(key) + size(item) for key, item in value.items())
    return 1 + sum(map(size, value)) if isinstance(value, list | tuple) else 1
