"""Code in a checkpoint does not run: fairseq's sources are searched for what could run it, and real attacks tried."""

import ast
import importlib.util
import io
import os
import sys
import tarfile
import tempfile
import warnings
from argparse import Namespace
from functools import partial
from pathlib import Path

import pytest
import torch
from fairseq import utils
from fairseq.models.transformer import TransformerModel

from bpe_dropout import InputError, checkpoints
from bpe_dropout.checkpoints import load_safely
from fairseq_plugins import guard
from fairseq_plugins.literals import NotALiteral, evaluate
from tests.fairseq_plugins.conftest import MODEL, OURS, plugin, run, run_both

# What could run code, by the names that Python gives it, and where fairseq has it although nothing of a checkpoint gets
# there. eval and exec are guarded in all modules, and torch.load in all that are.
DANGEROUS = {
    "__import__", "compile", "pickle.load", "pickle.loads", "pickle.Unpickler", "joblib.load", "torch.jit.load",
    "torch.hub.load", "torch.hub.load_state_dict_from_url", "torch.serialization.load", "hydra.utils.instantiate",
    "os.system", "os.popen", "subprocess.Popen", "subprocess.call", "subprocess.check_output", "subprocess.run",
}  # fmt: skip
KNOWN = {
    ("data/fasta_dataset.py", "subprocess.check_output"): "a data folder of proteins, which the user names",
    ("data/plasma_utils.py", "subprocess.Popen"): "a fixed program, started without a shell",
    ("distributed/utils.py", "pickle.loads"): "what the processes of one training send each other",
    ("distributed/utils.py", "subprocess.check_output"): "Slurm's scontrol, started without a shell",
    ("models/speech_to_text/hub_interface.py", "torch.hub.load"): "a model that config.yaml of the data folder names",
    ("tasks/audio_pretraining.py", "subprocess.call"): "what the user's command line says to do after saving",
}


@pytest.fixture(scope="module")
def fairseq_sources():
    folders = [guard.HOME, guard.HOME.parent / "fairseq_cli"]
    with warnings.catch_warnings(action="ignore"):  # of patterns that are written carelessly
        found = {path: ast.parse(path.read_text()) for folder in folders for path in sorted(folder.rglob("*.py"))}
    assert len(found) > 300
    return found


def module_of(path: Path) -> str:
    parts = path.relative_to(guard.HOME.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def calls(tree: ast.Module) -> set[str]:
    """Everything that is called in a source, as it is written: eval, torch.load."""
    return {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}


def spec_of(path: Path):
    """How Python would import a file of fairseq; its parent packages are not imported for that."""
    folder = path.parent.parent if path.stem == "__init__" else path.parent
    return guard.GuardedFinder.find_spec(module_of(path), [str(folder)])


def test_no_eval_of_fairseq_is_out_of_guard(fairseq_sources):
    found = 0
    for path, tree in fairseq_sources.items():
        if not calls(tree) & {"eval", "exec", "torch.load"}:
            continue
        found += 1
        module = sys.modules.get(module_of(path))
        if module is not None:
            assert guard.is_guarded(vars(module)), path
        spec = spec_of(path)
        assert spec is not None, path
        assert isinstance(spec.loader, guard.GuardedLoader), path
        bound = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        assert not bound & {"eval", "exec"}, f"{path} takes the guard away"
    assert found > 30


def test_there_is_no_other_way_to_code(fairseq_sources):
    found = set()
    for path, tree in fairseq_sources.items():
        if (guard.HOME / "examples") in path.parents:
            continue  # programs of their own, with files that their users name
        for call in calls(tree) & DANGEROUS:
            found.add((str(path.relative_to(guard.HOME if guard.HOME in path.parents else guard.HOME.parent)), call))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                names = {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
                assert not names & (DANGEROUS | {"torch.load", "builtins"}), f"{path} imports it under another name"
            elif isinstance(node, ast.Import):
                assert "builtins" not in {alias.name for alias in node.names}, path
            elif isinstance(node, ast.keyword) and node.arg == "allow_pickle":
                raise AssertionError(f"{path} loads pickles through numpy")
    assert found == set(KNOWN)


def test_the_search_finds_what_it_looks_for():
    tree = ast.parse("def f(x):\n    return [eval(x.y) for _ in torch.load(x)]")
    assert calls(tree) == {"eval", "torch.load"}


def test_modules_to_come_are_guarded_before_they_run(monkeypatch, tmp_path):
    package = tmp_path / "fairseq" / "later"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("value = eval('[(1, 2)] * 2')\n")
    (package / "evil.py").write_text("import os\nvalue = eval('os.getpid()')\n")
    monkeypatch.setattr(guard, "FOLDERS", [*guard.FOLDERS, str(package.parent)])
    monkeypatch.syspath_prepend(str(package.parent))
    assert importlib.import_module("later").value == [(1, 2), (1, 2)]
    with pytest.raises(NotALiteral):
        importlib.import_module("later.evil")
    assert importlib.util.find_spec("json").loader.__class__ is not guard.GuardedLoader
    with pytest.raises(InputError):
        sys.modules["later"].exec("import os")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[(512, 10, 5)] + [(8, 3, 2)] * 2 + [(5,2,2)]", [(512, 10, 5), (8, 3, 2), (8, 3, 2), (5, 2, 2)]),
        ("(0.9, 0.98)", (0.9, 0.98)),
        ("(1e-30, 1e-3)", (1e-30, 1e-3)),
        (" True", True),
        ("None", None),
        ("-1", -1),
        ("2 * [3 - 1]", [2, 2]),
        ('{"name": "x", 1: [None, ("a", -2.5)]}', {"name": "x", 1: [None, ("a", -2.5)]}),
        ("{}", {}),
    ],
)  # fmt: skip
def test_what_fairseq_evaluates(text, value):
    assert evaluate(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').getpid()", "print", "().__class__", "f'{1}'", "lambda: 1", "[x for x in ()]", "1 if 1 else 2",
        "9**9**9**9", "[1]*10**10", "[1] * 10000000000", "[[[1] * 300] * 300] * 300", "'a' * 1000000000",
        "[" + "[1] * 90000," * 8000 + "]", "(" * 90_000, "[" * 150 + "]" * 150, "-" * 90_000 + "1", "1+" * 40_000 + "1",
        "9" * 5000, "1e999", "[1" + ",1" * 100_000 + "]", "x" * 10_000_000, "{**{}}", "{[]: 1}", "1j", "...", "", "\0",
        b"1", b"__import__('os')",
    ],
    ids=lambda text: repr(text[:20]),
)  # fmt: skip
def test_what_is_not_evaluated(text):
    with pytest.raises(NotALiteral, match="fairseq would evaluate an option as Python"):
        evaluate(text)


def test_fairseq_sees_no_difference():
    assert utils.eval_str_list("(1, 2)", type=int) == [1, 2]
    assert utils.eval_str_list("3", type=int) == [3]
    assert utils.eval_str_dict('{"name": "x"}') == {"name": "x"}
    assert utils.eval_bool("True") is True
    with pytest.raises(NotALiteral):
        utils.eval_bool(b"print()")
    assert utils.eval_bool(True) is False, "as eval(True), which is an error that fairseq takes for the default"


@pytest.fixture(scope="module")
def trained(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    run("fairseq-train", data, *OURS, *MODEL, "--max-tokens", "2000", "--max-update", "1", "--save-dir", folder)
    return folder / "checkpoint_last.pt"


def change(trained: Path, path: Path, node: str, **options: object) -> Path:
    """A copy of a checkpoint with other options."""
    state = load_safely(trained)
    named = state["cfg"][node]
    if isinstance(named, Namespace):
        vars(named).update(options)
    else:
        named.update(options)
    torch.save(state, path)
    return path


FCONV = {"_name": "fconv", "arch": "fconv", "encoder_embed_path": None, "decoder_embed_path": None,
         "decoder_layers": "[(8, 3)]", "decoder_attention": "True", "share_input_output_embed": False,
         "decoder_out_embed_dim": 8}  # fmt: skip

TRANSLATE = """
import sys
import fairseq_plugins
from bpe_dropout import InputError
from fairseq.models.transformer import TransformerModel
try:
    TransformerModel.from_pretrained(sys.argv[1], sys.argv[2], data_name_or_path=sys.argv[3])
except InputError as error:
    sys.exit(f"refused: {error}")
"""


@pytest.mark.parametrize(
    ("node", "options", "evil"),
    [
        ("model", {}, "adaptive_softmax_cutoff"),
        ("model", {}, "encoder_xformers_att_config"),
        ("model", {}, "decoder_xformers_att_config"),
        ("model", FCONV, "encoder_layers"),
        ("model", {**FCONV, "encoder_layers": "[(8, 3)]"}, "decoder_attention"),
        ("model", {**FCONV, "_name": "fconv_self_att", "arch": "fconv_self_att"}, "pretrained"),
        ("task", {"_name": "multilingual_translation", "task": "multilingual_translation", "lang_pairs": "en-xx",
                  "source_lang": None, "target_lang": None}, "left_pad_source"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_attacks_on_from_pretrained(trained, data, tmp_path, node, options, evil):
    """In this process, with the guard and, so that the test can fail, without it."""
    witness = tmp_path / "witness"
    code = f"__import__('os').system('touch {witness}')"
    state = load_safely(trained)
    old = state["cfg"][node]
    old = dict(vars(old)) if isinstance(old, Namespace) else old
    state["cfg"][node] = Namespace(**{**old, **options, evil: code})
    torch.save(state, tmp_path / "evil.pt")

    def translate() -> None:
        TransformerModel.from_pretrained(str(tmp_path), "evil.pt", data_name_or_path=str(data))

    with pytest.raises(InputError, match=r"evil\.pt is not loaded: fairseq would evaluate an option as Python"):
        translate()
    assert not witness.exists()
    with pytest.MonkeyPatch.context() as patch:
        for module in list(sys.modules.values()):
            if guard.is_guarded(getattr(module, "__dict__", {})):
                patch.setattr(module, "eval", eval)
        patch.setattr(torch, "load", partial(checkpoints.torch_load, weights_only=False))
        try:
            translate()
        except Exception as error:
            print(error)
    assert witness.exists(), "the attack is a real one"


class Malicious:
    def __init__(self, witness):
        self.witness = witness

    def __reduce__(self):
        return os.system, (f"touch {self.witness}",)


def test_attacks_on_the_real_commands(trained, data, tmp_path):
    """With the environment that tells torch to run whatever a pickle says."""
    witness = tmp_path / "witness"
    code = f"__import__('os').system('touch {witness}')"
    change(trained, tmp_path / "cutoff.pt", "model", adaptive_softmax_cutoff=code)
    change(trained, tmp_path / "environment.pt", "model", arch="${oc.env:HOME}")
    torch.save({**load_safely(trained), "extra": Malicious(witness)}, tmp_path / "pickle.pt")
    unsafe = {"check": False, "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"}
    generate = ["fairseq-generate", data, *OURS, "--cpu", "--gen-subset", "valid", "--max-len-b", "5", "--quiet"]
    script = tmp_path / "translate.py"
    script.write_text(TRANSLATE)
    cutoff, environment, pickle, pretrained, pretrained_pickle, averaged = run_both(
        (*generate, "--path", tmp_path / "cutoff.pt", unsafe),
        (*generate, "--path", tmp_path / "environment.pt", unsafe),
        (*generate, "--path", tmp_path / "pickle.pt", unsafe),
        ("python", script, tmp_path, "cutoff.pt", data, unsafe),
        ("python", script, tmp_path, "pickle.pt", data, unsafe),
        ("python", "-m", "fairseq_plugins", "average", tmp_path / "pickle.pt", "-o", tmp_path / "average.pt", unsafe),
    )
    assert not witness.exists()
    evaluated = "cutoff.pt is not loaded: fairseq would evaluate an option as Python"
    refers = "environment.pt holds an option that refers to something else, '${oc.env:HOME}'"
    system = "pickle.pt holds posix.system, which no fairseq checkpoint needs"
    for done, sentence in [(cutoff, evaluated), (environment, refers), (pickle, system), (pretrained, evaluated),
                           (pretrained_pickle, system), (averaged, system)]:  # fmt: skip
        assert done.code == 1, done.out
        assert sentence in done.sentence
    torch.load(tmp_path / "pickle.pt", weights_only=False)
    assert witness.exists(), "the attack is a real one"


def test_a_fairseq_that_loads_anything(tmp_path):
    """weights_only=False of a module of fairseq is not heeded, and that of a script is."""
    torch.save({"extra": Malicious(tmp_path / "witness")}, tmp_path / "evil.pt")
    load = f"import torch; torch.load({str(tmp_path / 'evil.pt')!r}, weights_only=False)"
    with pytest.raises(Exception, match=r"posix\.system"):
        exec(load, {"eval": evaluate})
    assert not (tmp_path / "witness").exists()
    exec(load, {})
    assert (tmp_path / "witness").exists()


@pytest.mark.parametrize("form", ["cfg", "args"])
def test_codes_that_a_checkpoint_names(trained, data, tmp_path, corpus, form):
    """They are read in the data folder only; the user may name any."""
    outside = corpus.codes["en"]
    state = load_safely(trained)
    if form == "args":  # as fairseq has written them before it had hydra
        nodes = [vars(node) if isinstance(node, Namespace) else node for node in state["cfg"].values() if node]
        flat = {name: value for node in nodes for name, value in node.items() if name != "_name"}
        names = {
            name: state["cfg"][name]["_name"] for name in ("task", "bpe", "criterion", "optimizer", "lr_scheduler")
        }
        state["args"], state["cfg"] = Namespace(**{**flat, **names, "bpe_dropout_src_codes": str(outside)}), None
    else:
        state["cfg"]["bpe"]["bpe_dropout_src_codes"] = str(outside)
    torch.save(state, tmp_path / "outside.pt")

    def translate(**more):
        model = TransformerModel.from_pretrained(str(tmp_path), "outside.pt", data_name_or_path=str(data), **more)
        return model.translate("the value", beam=1, max_len_b=3)

    with pytest.raises(InputError, match=r"the checkpoint names the file .*codes\.en, which is not in the data folder"):
        translate()
    translate(bpe_dropout_src_codes=str(outside))
    translate(bpe_dropout_src_codes=None)
    if form == "cfg":
        state["cfg"]["bpe"]["bpe_dropout_src_codes"] = str(data / "codes.en")
        torch.save(state, tmp_path / "outside.pt")
        translate()
        plugin("average", tmp_path / "outside.pt", "-o", tmp_path / "average.pt")
        assert load_safely(tmp_path / "average.pt")["cfg"]["bpe"]["bpe_dropout_src_codes"] == str(data / "codes.en")


@pytest.mark.parametrize(
    "names",
    [["model/a", "../outside"], ["model/../../outside"], ["{}/mine"], ["..a", "..b"], ["model/..a", "model/..b"]],
)
def test_an_archive_writes_and_moves_nothing_outside_its_folder(tmp_path, names, monkeypatch):
    (tmp_path / "mine").write_text("my own")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    path = tmp_path / "model.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for one in [name.format(tmp_path) for name in names]:
            member = tarfile.TarInfo(one)
            member.size = 4
            archive.addfile(member, io.BytesIO(b"evil"))
    mine = staticmethod(tarfile.fully_trusted_filter)
    monkeypatch.setattr(tarfile.TarFile, "extraction_filter", mine, raising=True)
    with pytest.raises(InputError, match=r"model\.tar\.gz is not unpacked: .*(outside|absolute)"):
        TransformerModel.from_pretrained(str(path))
    assert path.is_file(), "it is left where it was"
    assert sorted(one.name for one in tmp_path.rglob("*")) == ["mine", "model.tar.gz", "temporary"]
    assert vars(tarfile.TarFile)["extraction_filter"] is mine, "for the rest of the process nothing has changed"
