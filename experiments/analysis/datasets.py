"""The datasets (section 4.3, table 1): what configs/corpora says, the paper's numbers of sentences, and the counts of
the prepared text. The measurement counts it: python -m experiments.analysis.datasets RUN --folder DATA --output FILE

Where it is known (counts.json of scripts.prepare has it), the ceiling is beside them: the BLEU of the test text itself,
prepared and detokenized.
"""

from __future__ import annotations

from pathlib import Path

from bpe_dropout import InputError
from scripts.corpora import SPLITS, CorpusConfig, read_corpora, read_count
from scripts.paper import Agreement, Item, corpora_of, first_run
from scripts.runs import Plan, Run, plan_run
from scripts.stage import read_json

from .document import Cell, ReportPart, Row, Table
from .labels import short
from .measurement import begin, record, sides_of
from .results import Results


def main() -> None:
    plan, options = begin("datasets", __doc__)
    found = {split: count(split, plan, options.folder) for split in SPLITS}
    ceiling = read_json(options.counts)["test"].get("ceiling", {}) if options.counts else {}
    content = {"corpus": plan.corpus.name, "subset": plan.run.subset, "pairs": found, "ceiling": ceiling}
    record("datasets", plan, options, content)


def count(split: str, plan: Plan, folder: Path) -> int:
    """The pairs of a split, from both of its sides."""
    numbers = {name: len(side.corpus(split)) for name, side in sides_of(plan, folder).items()}
    if numbers["src"] != numbers["tgt"]:
        lines = " and ".join(str(number) for number in numbers.values())
        raise InputError(f"{folder}: the two sides of {split} have {lines} lines; make the folder again")
    return numbers["src"]


COLUMNS = ["", "train", "dev", "test", "vocabulary", "batch", "p in BPE-dropout"]
CEILING = "ceiling"
CEILING_NOTE = (
    "The ceiling is BLEU of the test text itself, prepared and detokenized as a translation is, in each "
    "language: what a system scores that writes the references themselves."
)


def build(item: Item, results: Results, configs: Path, own: list[str]) -> ReportPart:
    part = ReportPart(item.name, item.title, item.section, item.text.strip(), is_study=item.is_study)
    corpora = read_corpora(configs)
    names = own or [*results.names("datasets"), *results.names()]
    counted, ceilings = count_texts(names, results), read_ceilings(names, results)
    asked = dict.fromkeys(plan_run(Run.parse(name), configs).corpus.name for name in own)
    shown = [name for name in asked if name in corpora] or corpora_of(item, configs)
    agreement = None if own else item.agreement
    rows = [row_of(corpora[name], counted.get(name, {}), agreement, configs) for name in shown]
    part.blocks.append(table_of(item.name, item.title, shown, rows, ceilings))
    part.fill = f"make fill-{item.name}" if part.missing and not own else ""
    part.needs = "its corpora"
    return part


def table_of(
    name: str, caption: str, corpora: list[str], rows: list[Row], ceilings: dict[str, dict[str, float]]
) -> Table:
    """With a column for the ceilings, if there is one."""
    if not any(corpus in ceilings for corpus in corpora):
        return Table(name, caption, COLUMNS, rows)
    for corpus, row in zip(corpora, rows, strict=True):
        row.cells.append(Cell(" / ".join(f"{score:.1f}" for score in ceilings.get(corpus, {}).values())))
    return Table(name, caption, [*COLUMNS, CEILING], rows, [CEILING_NOTE])


def count_texts(names: list[str], results: Results) -> dict[str, dict[str, int]]:
    """The pairs of each corpus by split, as they were measured, or as the result of a run has them; not of subsets."""
    found: dict[str, dict[str, int]] = {}
    for name in names:
        measured, result = results.get(name, "datasets"), results.get(name)
        if measured and not measured["subset"]:
            found.setdefault(measured["corpus"], measured["pairs"])
        elif result and not result["configuration"]["subset"]:
            counts = {split: result["text"][split]["pairs"] for split in SPLITS}
            found.setdefault(result["configuration"]["corpus"], counts)
    return found


def read_ceilings(names: list[str], results: Results) -> dict[str, dict[str, float]]:
    """The ceilings of each corpus by language. Subsets have the test set of the whole, cased text its own."""
    found: dict[str, dict[str, float]] = {}
    for name in names:
        measured, result = results.get(name, "datasets"), results.get(name)
        corpus = measured["corpus"] if measured else result["configuration"]["corpus"] if result else ""
        ceiling = (measured or {}).get("ceiling") or (result or {}).get("text", {}).get("test", {}).get("ceiling")
        if ceiling:
            found.setdefault(corpus, ceiling)
    return found


def row_of(corpus: CorpusConfig, counts: dict[str, int], agreement: Agreement | None, configs: Path) -> Row:
    first, second = corpus.pair
    run = first_run(corpus)
    command = f"make datasets.{run.name}"
    cells = [Cell(f"{first.capitalize()} ↔ {second.capitalize()}")]
    for split in SPLITS:
        paper = corpus.paper.get(split) if agreement else None
        cells.append(count_cell(counts.get(split), str(paper) if paper else "", agreement, command))
    sizes = dict.fromkeys(short(language.vocabulary) for language in corpus.languages.values())
    batch = plan_run(run, configs).batch
    cells += [Cell(" / ".join(sizes)), Cell(short(batch), value=batch)]
    cells.append(Cell(" / ".join(f"{language.dropout:g}" for language in corpus.languages.values())))
    return Row(cells, corpus.title.split(" ")[0] if agreement else corpus.dataset)


def count_cell(ours: int | None, paper: str, agreement: Agreement | None, command: str) -> Cell:
    if ours is None:
        return Cell(paper=paper, verdict="not run", commands=[command], value=read_count(paper) if paper else None)
    cell = Cell(str(ours), value=ours, paper=paper)
    if paper and agreement:
        cell.difference = f"{ours - read_count(paper):+.0f}"
        cell.verdict = agreement.verdict(ours, read_count(paper))
    return cell


if __name__ == "__main__":
    main()
