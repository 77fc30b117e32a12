import json
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="the tests of the report need what `make setup` installs")

from bpe_dropout import Codes
from experiments.analysis.results import Results
from scripts.testsets import TEST, place


class Made(Results):
    """Results that a test makes."""

    def add(self, run: str, record: str = TEST, **content) -> None:
        path = place(self.folder, record) / f"{run}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"run": run, **content}))

    def compare(
        self, group: str, scores: dict[str, float], p: dict[tuple[str, str], float], testset: str = TEST
    ) -> None:
        pairs = [
            {
                "systems": list(pair),
                "difference": scores[pair[1]] - scores[pair[0]],
                "p": one,
                "significant": one < 0.05,
            }
            for pair, one in p.items()
        ]
        path = place(self.folder, testset) / "comparisons" / f"{group}.x.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"group": group, "bleu": scores, "pairs": pairs}))


@pytest.fixture
def results(tmp_path) -> Made:
    return Made(tmp_path / "results")


@pytest.fixture(scope="session")
def text(tmp_path_factory, english) -> Path:
    """500 lines of English, made up."""
    path = tmp_path_factory.mktemp("text") / "train.en"
    path.write_text("".join(f"{line}\n" for line in english[:500]))
    return path


@pytest.fixture(scope="session")
def few_codes(codes) -> Codes:
    return Codes(codes.pairs[:300])
