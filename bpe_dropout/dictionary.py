"""Pieces and their ids: fairseq's dictionaries, read without fairseq.

    the 120     ->  id 4
    un@@ 57     ->  id 5

A fairseq dictionary file names the pieces from id 4 on; 0 to 3 are <s>, <pad>, </s> and <unk>.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from . import _core
from .errors import InputError, check_number, shorten
from .lines import read_lines
from .segmenter import Segmenter

SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")


@dataclass(frozen=True)
class Dictionary:
    """Ids of pieces; a piece that is not in `ids` is `unk`, and `eos`, if there is one, ends the sentences of a corpus.

    `pad` fills the rows of batches.

    >>> dictionary = Dictionary({"un@@": 4, "related": 5}, unk=3)
    >>> dictionary["un@@"], dictionary["rel@@"]
    (4, 3)
    >>> list(dictionary), "rel@@" in dictionary
    (['un@@', 'related'], False)
    """

    ids: Mapping[str, int]
    unk: int
    eos: int | None = None
    pad: int | None = None

    def __post_init__(self) -> None:
        symbols = {name: number for name, number in (("eos", self.eos), ("pad", self.pad)) if number is not None}
        for piece, number in [*self.ids.items(), ("unk", self.unk), *symbols.items()]:
            if type(number) is not int or not 0 <= number < 2**31:  # there may be many
                check_number(f"the id of {shorten(piece)}", number, 2**31)

    def __getitem__(self, piece: str) -> int:
        return self.ids.get(piece, self.unk)

    def __contains__(self, piece: object) -> bool:
        return piece in self.ids

    def __iter__(self) -> Iterator[str]:
        """Without this, Python would look for pieces 0, 1, ..., and every one of them has an id."""
        return iter(self.ids)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def size(self) -> int:
        """How many ids there are, with those of symbols: the rows of a table of embeddings."""
        symbols = (self.unk, self.eos or 0, self.pad or 0)
        return 1 + max(*symbols, *self.ids.values())

    def bind(self, segmenter: Segmenter) -> _core.Ids:
        """The ids of a segmenter's pieces, for the compiled core."""
        return _core.Ids(segmenter._merges, dict(self.ids), self.unk)

    @classmethod
    def of_pieces(cls, pieces: Iterable[str]) -> Dictionary:
        """These pieces from id 4 on, and fairseq's symbols before them."""
        ids = {piece: number for number, piece in enumerate(pieces, len(SPECIAL))}
        return cls(ids, *(SPECIAL.index(symbol) for symbol in ("<unk>", "</s>", "<pad>")))

    @classmethod
    def load(cls, path: str | Path) -> Dictionary:
        """Reads a fairseq dictionary file, `dict.en.txt`."""
        # <unk> and </s> in a text are pieces that no dictionary has, not the symbols of that name.
        ids: dict[str, int] = {}
        number = len(SPECIAL)
        for line_number, line in enumerate(read_lines(path, "a fairseq dictionary"), 1):
            piece, _, count = line.rstrip("\r\n ").rpartition(" ")
            overwrite = count == "#fairseq:overwrite"
            if overwrite:
                piece, _, count = piece.rpartition(" ")
            if not piece or not count.lstrip("-").isdigit():
                raise InputError(
                    f"{path}, line {line_number}: expected a piece, a space and its count, not {shorten(line)}"
                )
            if (piece in ids or piece in SPECIAL) and not overwrite:
                raise InputError(
                    f"{path}, line {line_number}: {shorten(piece)} is in the dictionary already; fairseq refuses that, "
                    "too"
                )
            ids[piece] = number
            number += 1
        return replace(cls.of_pieces(()), ids=ids)
