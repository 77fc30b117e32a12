"""What fairseq reads ahead, in a thread of its own, has ended before Python does.

The thread is a daemon. If it is in torch, or in our core, when Python shuts down, the process is aborted after all its
work was done ("terminate called without an active exception", exit code 134): so may end any training that stops in the
middle of an epoch.
"""

from __future__ import annotations

import atexit
import queue
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any
from weakref import WeakSet

PATIENCE = 10.0  # seconds for a batch that is being read; a loader that hangs must not keep Python from ending


def end_with_python(consumer: Any) -> Any:
    """Replaces fairseq's BackgroundConsumer."""
    started: WeakSet[Any] = WeakSet()

    class Consumer(consumer):
        ending = False
        _source: Iterable[Any]

        def start(self) -> None:
            started.add(self)
            super().start()

        def run(self) -> None:
            self._source = self._until_the_end(self._source)
            super().run()

        def _until_the_end(self, source: Iterable[Any]) -> Iterator[Any]:
            """A generator, so that it is fairseq that starts the loader: on the right GPU, and with its errors passed
            on."""
            for item in source:
                if self.ending:
                    return
                yield item

        def end(self, deadline: float) -> None:
            self.ending = True
            while self.is_alive() and time.monotonic() < deadline:
                with suppress(queue.Empty):
                    self._queue.get_nowait()  # it may be waiting for room
                self.join(0.01)

    @atexit.register
    def end_all() -> None:
        deadline = time.monotonic() + PATIENCE
        for one in list(started):
            one.end(deadline)

    return Consumer
