"""Bad input ends a fairseq command with a sentence. Everything else keeps its traceback."""

from __future__ import annotations

import sys
from types import TracebackType

from bpe_dropout import InputError


def install() -> None:
    before = sys.excepthook

    def say(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        # With several GPUs, fairseq runs in processes, whose errors come as text.
        _, ours, sentence = str(error).rpartition("bpe_dropout.errors.InputError: ")
        if isinstance(error, InputError) or (kind.__name__ == "ProcessRaisedException" and ours):
            sys.stdout.flush()
            print(f"error: {sentence.rstrip()}", file=sys.stderr)
        else:
            before(kind, error, trace)

    sys.excepthook = say
