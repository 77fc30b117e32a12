"""A Transformer in plain PyTorch, trained with BPE-dropout on two text files, and scored.

    python examples/pytorch/translate.py all.en all.de work

Line n of the one file is the translation of line n of the other; the ends of their names are the languages. Every 20th
pair is for the test. Needs torch and sacrebleu. The same command goes on where it was, also with more --updates.
"""

import argparse
import itertools
import subprocess
import sys
from pathlib import Path

import sacrebleu
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from bpe_dropout import Dictionary, InputError
from bpe_dropout.data.preparation import read_preparation
from bpe_dropout.torch import Pairs, TokenBatches

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def prepare(source: Path, target: Path, work: Path, folder: Path) -> None:
    """A data folder: words, codes and dictionaries. Nothing is segmented yet."""
    for file in (source, target):
        lines = file.read_bytes().removesuffix(b"\n").split(b"\n")
        for name, part in (("test", lines[::20]), ("train", [line for n, line in enumerate(lines) if n % 20])):
            path, text = work / f"{name}{file.suffix}", b"\n".join(part)
            if folder.exists() and (not path.exists() or path.read_bytes() != text):
                raise InputError(f"{work} was made of other texts than {file}: name another folder, or remove it")
            path.write_bytes(text)
    command = [sys.executable, "-m", "bpe_dropout", "data", "--tokenize", "--lowercase", "--merges", "1000"]
    command += ["--vocabulary", "dropout", "--source-lang", source.suffix[1:], "--target-lang", target.suffix[1:]]
    command += ["--trainpref", str(work / "train"), "--testpref", str(work / "test"), "--destdir", str(folder)]
    if not folder.exists() and subprocess.run(command).returncode:
        sys.exit(1)  # it has said why


class Transformer(nn.Module):
    def __init__(self, dictionaries: list[Dictionary], size: int = 128, layers: int = 2, p: float = 0.1) -> None:
        super().__init__()
        layer = {"nhead": 4, "dim_feedforward": 4 * size, "dropout": p, "batch_first": True, "norm_first": True}
        encoder, decoder = nn.TransformerEncoderLayer(size, **layer), nn.TransformerDecoderLayer(size, **layer)
        self.encoder = nn.TransformerEncoder(encoder, layers, nn.LayerNorm(size), enable_nested_tensor=False)
        self.decoder = nn.TransformerDecoder(decoder, layers, nn.LayerNorm(size))
        self.source, self.target = (nn.Embedding(one.size, size, one.pad) for one in dictionaries)
        for table in (self.source, self.target):
            nn.init.normal_(table.weight, std=size**-0.5)
        self.pad, self.eos, self.size, self.dropout = dictionaries[1].pad, dictionaries[1].eos, size, nn.Dropout(p)

    def embed(self, table: nn.Embedding, tokens: Tensor) -> Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)[:, None]
        waves = places * 10000 ** (torch.arange(0, self.size, 2, device=tokens.device) / -self.size)
        return self.dropout(table(tokens) * self.size**0.5 + torch.cat([waves.sin(), waves.cos()], dim=1))

    def encode(self, source: Tensor) -> Tensor:
        return self.encoder(self.embed(self.source, source), src_key_padding_mask=source == self.pad)

    def decode(self, encoded: Tensor, source: Tensor, previous: Tensor) -> Tensor:
        later = torch.ones(previous.shape[1], previous.shape[1], dtype=torch.bool, device=source.device).triu(1)
        embedded = self.embed(self.target, previous)
        states = self.decoder(embedded, encoded, later, memory_key_padding_mask=source == self.pad)
        return states @ self.target.weight.T

    def forward(self, source: Tensor, previous: Tensor, target: Tensor) -> Tensor:
        logits = self.decode(self.encode(source), source, previous)
        return nn.functional.cross_entropy(logits.mT, target, ignore_index=self.pad, label_smoothing=0.1)

    @torch.no_grad()
    def translate(self, source: Tensor) -> list[list[int]]:
        """The most probable token, one after the other, until the end of the sentence."""
        encoded, tokens = self.encode(source), source.new_full((len(source), 1), self.eos)
        for _ in range(2 * source.shape[1] + 10):
            best = self.decode(encoded, source, tokens)[:, -1].argmax(-1)
            tokens = torch.cat([tokens, best[:, None]], dim=1)
            if (tokens[:, 1:] == self.eos).any(1).all():
                break
        return [list(itertools.takewhile(lambda token: token != self.eos, row)) for row in tokens[:, 1:].tolist()]


def train(model: Transformer, pairs: Pairs, updates: int, save_every: int, checkpoint: Path) -> None:
    """Every epoch has new segmentations of all sentences, and new batches. The learning rate rises, and falls to 0."""
    batches = TokenBatches(pairs, max_tokens=1500)
    loader = DataLoader(pairs, batch_sampler=batches, collate_fn=pairs.collate, num_workers=1, persistent_workers=True)
    loader.generator = torch.Generator()  # of its own, so that the model's dropout is the same after a restart
    optimizer = torch.optim.Adam(model.parameters(), lr=0.002, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: min(5 * n + 5, 1.25 * (updates - n)) / updates)
    parts = {"model": model, "optimizer": optimizer, "schedule": schedule}
    if checkpoint.exists():
        saved = torch.load(checkpoint)
        for name, part in {**parts, "batches": batches}.items():
            part.load_state_dict(saved[name])
        torch.set_rng_state(saved["random"])
    for epoch in itertools.count(max(1, batches.epoch)):
        batches.set_epoch(epoch)
        for batch in loader:
            if schedule.last_epoch >= updates:  # which counts updates
                return
            loss = model(batch.source.to(DEVICE), batch.previous.to(DEVICE), batch.target.to(DEVICE))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            update = schedule.last_epoch
            if update % save_every == 0 or update == updates:
                print(f"epoch {epoch}, update {update}: loss {loss.item():.4f}", flush=True)
                saved = {"batches": batches.state_dict(after=batch), "random": torch.get_rng_state()}
                torch.save(saved | {name: part.state_dict() for name, part in parts.items()}, f"{checkpoint}.new")
                Path(f"{checkpoint}.new").replace(checkpoint)


def score(model: Transformer, pairs: Pairs, folder: Path, references: Path) -> str:
    """Translates without dropout, and compares with the references as they are."""
    pieces = {number: piece for piece, number in pairs.texts[1].dictionary.ids.items()}
    preparation, hypotheses = read_preparation(folder, references.suffix[1:]), [""] * len(pairs)
    model.eval()
    for batch in DataLoader(pairs, batch_sampler=TokenBatches(pairs, 2000, shuffle=False), collate_fn=pairs.collate):
        for number, row in zip(batch.numbers.tolist(), model.translate(batch.source.to(DEVICE)), strict=True):
            line = " ".join(pieces.get(token, "<unk>") for token in row).replace("@@ ", "")
            hypotheses[number] = preparation.restore(line)
    return str(sacrebleu.corpus_bleu(hypotheses, [references.read_text("utf-8").split("\n")], lowercase=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, about in ("source", "a text"), ("target", "its translation"), ("work", "a folder for all that is made"):
        parser.add_argument(name, type=Path, help=about)
    parser.add_argument("--dropout", type=float, default=0.1, help="p of BPE-dropout; 0 is plain BPE (%(default)s)")
    parser.add_argument("--updates", type=int, default=1000, help="how long to train (%(default)s)")
    parser.add_argument("--save-every", type=int, default=100, help="updates between checkpoints (%(default)s)")
    options = parser.parse_args()
    work, folder = options.work, options.work / "data"
    work.mkdir(parents=True, exist_ok=True)
    prepare(options.source, options.target, work, folder)
    torch.manual_seed(1)
    pairs = Pairs.from_folder(folder, "train", dropout=options.dropout, seed=1)
    model = Transformer([text.dictionary for text in pairs.texts]).to(DEVICE)
    train(model, pairs, max(1, options.updates), max(1, options.save_every), work / "checkpoint.pt")
    print(score(model, Pairs.from_folder(folder, "test"), folder, work / f"test{options.target.suffix}"))


if __name__ == "__main__":
    try:
        main()
    except (InputError, OSError) as error:
        sys.exit(f"translate.py: {error}")
