"""A Transformer in plain PyTorch, trained with BPE-dropout on two text files, and scored.

    python examples/pytorch/translate.py all.en all.de work

Line n of the one file is the translation of line n of the other; the ends of their names are the languages. Every 20th
pair is for the test. Needs torch and sacrebleu. If it is stopped, the same command goes on where it was.
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

from bpe_dropout.data.preparation import read_preparation
from bpe_dropout.torch import Pairs, TokenBatches

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def prepare(source: Path, target: Path, work: Path) -> None:
    """A data folder: words, codes and dictionaries. Nothing is segmented yet."""
    for file in (source, target):
        lines = file.read_text("utf-8").removesuffix("\n").split("\n")
        (work / f"test{file.suffix}").write_text("\n".join(lines[::20]), "utf-8")
        del lines[::20]
        (work / f"train{file.suffix}").write_text("\n".join(lines), "utf-8")
    command = [sys.executable, "-m", "bpe_dropout", "data", "--tokenize", "--lowercase", "--merges", "1000"]
    command += ["--vocabulary", "dropout", "--source-lang", source.suffix[1:], "--target-lang", target.suffix[1:]]
    command += ["--trainpref", str(work / "train"), "--testpref", str(work / "test"), "--destdir", str(work / "data")]
    subprocess.run(command, check=True)


class Transformer(nn.Module):
    def __init__(self, sources: int, targets: int, pad: int, size: int = 128, layers: int = 2, p: float = 0.1) -> None:
        super().__init__()
        layer = {"nhead": 4, "dim_feedforward": 4 * size, "dropout": p, "batch_first": True, "norm_first": True}
        encoder, decoder = nn.TransformerEncoderLayer(size, **layer), nn.TransformerDecoderLayer(size, **layer)
        self.encoder = nn.TransformerEncoder(encoder, layers, nn.LayerNorm(size), enable_nested_tensor=False)
        self.decoder = nn.TransformerDecoder(decoder, layers, nn.LayerNorm(size))
        self.source, self.target = nn.Embedding(sources, size, pad), nn.Embedding(targets, size, pad)
        for table in (self.source, self.target):
            nn.init.normal_(table.weight, std=size**-0.5)
        self.pad, self.size, self.dropout = pad, size, nn.Dropout(p)

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
    def translate(self, source: Tensor, eos: int) -> list[list[int]]:
        """The most probable token, one after the other, until the end of the sentence."""
        encoded, tokens = self.encode(source), source.new_full((len(source), 1), eos)
        for _ in range(2 * source.shape[1] + 10):
            best = self.decode(encoded, source, tokens)[:, -1].argmax(-1)
            tokens = torch.cat([tokens, best[:, None]], dim=1)
            if (tokens[:, 1:] == eos).any(1).all():
                break
        return [list(itertools.takewhile(lambda token: token != eos, row)) for row in tokens[:, 1:].tolist()]


def train(model: Transformer, pairs: Pairs, updates: int, save_every: int, checkpoint: Path) -> None:
    """Every epoch has new segmentations of all sentences, and new batches."""
    batches = TokenBatches(pairs, max_tokens=1500)
    loader = DataLoader(pairs, batch_sampler=batches, collate_fn=pairs.collate, num_workers=1, persistent_workers=True)
    loader.generator = torch.Generator()  # of its own, so that the model's dropout is the same after a restart
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.002, total_steps=updates + 1, pct_start=0.2)
    parts, update = {"model": model, "optimizer": optimizer, "schedule": schedule}, 0
    if checkpoint.exists():
        saved = torch.load(checkpoint)
        for name, part in parts.items():
            part.load_state_dict(saved[name])
        batches.load_state_dict(saved["batches"])
        torch.set_rng_state(saved["random"])
        update = saved["update"]
    model.train()
    for epoch in itertools.count(max(1, batches.epoch)):
        batches.set_epoch(epoch)
        for batch in loader:
            if update == updates:
                return
            loss = model(batch.source.to(DEVICE), batch.previous.to(DEVICE), batch.target.to(DEVICE))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            update += 1
            if update % save_every == 0 or update == updates:
                print(f"epoch {epoch}, update {update}: loss {loss.item():.4f}", flush=True)
                saved = {"batches": batches.state_dict(after=batch), "random": torch.get_rng_state(), "update": update}
                torch.save(saved | {name: part.state_dict() for name, part in parts.items()}, f"{checkpoint}.new")
                Path(f"{checkpoint}.new").replace(checkpoint)


def score(model: Transformer, pairs: Pairs, folder: Path, references: Path) -> str:
    """Translates without dropout, and compares with the references as they are."""
    dictionary, preparation = pairs.texts[1].dictionary, read_preparation(folder, references.suffix[1:])
    pieces = {number: piece for piece, number in dictionary.ids.items()}
    hypotheses = [""] * len(pairs)
    model.eval()
    for batch in DataLoader(pairs, batch_sampler=TokenBatches(pairs, 2000, shuffle=False), collate_fn=pairs.collate):
        translated = model.translate(batch.source.to(DEVICE), dictionary.eos)
        for number, row in zip(batch.numbers.tolist(), translated, strict=True):
            line = " ".join(pieces.get(token, "<unk>") for token in row).replace("@@ ", "")
            hypotheses[number] = preparation.restore(line)
    return str(sacrebleu.corpus_bleu(hypotheses, [references.read_text("utf-8").split("\n")], lowercase=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("source", "target", "work"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--dropout", type=float, default=0.1, help="p of BPE-dropout; 0 is plain BPE")
    parser.add_argument("--updates", type=int, default=1000)
    parser.add_argument("--save-every", type=int, default=100)
    options = parser.parse_args()
    work, folder = options.work, options.work / "data"
    work.mkdir(exist_ok=True)
    if not folder.exists():
        prepare(options.source, options.target, work)
    torch.manual_seed(1)
    pairs = Pairs.from_folder(folder, "train", dropout=options.dropout, seed=1)
    source, target = (text.dictionary for text in pairs.texts)
    model = Transformer(source.size, target.size, target.pad).to(DEVICE)
    train(model, pairs, options.updates, options.save_every, work / "checkpoint.pt")
    print(score(model, Pairs.from_folder(folder, "test"), folder, work / f"test{options.target.suffix}"))


if __name__ == "__main__":
    main()
