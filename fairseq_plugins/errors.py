"""Bad input ends a fairseq command with a sentence. Everything else keeps its traceback."""

from __future__ import annotations

import sys
from types import TracebackType

from bpe_dropout import InputError


def install() -> None:
    before = sys.excepthook

    def say(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if isinstance(error, InputError):
            sys.stdout.flush()
            print(f"error: {error}", file=sys.stderr)
        else:
            before(kind, error, trace)

    sys.excepthook = say
