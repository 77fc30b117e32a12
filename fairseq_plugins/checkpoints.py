"""Checkpoints in fairseq: loaded safely, with an error that says what is wrong, and never left half written.

Loading. fairseq loads them as bpe_dropout/checkpoints.py does: tensors and plain data, and nothing that could run code.
What fairseq would evaluate of their options is read as literals (guard.py), and files that they name are read from the
data folder only. An archive of a model writes nothing outside its own folder.

Saving. fairseq writes a checkpoint under another name and renames it, but then copies it, byte by byte, to
checkpoint_last.pt: a training that is killed at that moment would leave half a file there. Copies are renamed, too.
And where --save-interval-updates falls on the end of an epoch, fairseq leaves that checkpoint out; here it is written.

What of this takes the place of something in fairseq or torch is listed in patches.py.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tarfile
from collections.abc import Sequence
from functools import wraps
from typing import Any

from fairseq import checkpoint_utils
from fairseq.file_io import PathManager

from bpe_dropout import InputError
from bpe_dropout.checkpoints import load_safely, options_of
from bpe_dropout.files import whole

from .guard import is_guarded
from .literals import NotALiteral
from .methods import OF_CHECKPOINT, file_options


def load_safely_for_fairseq(load: Any) -> Any:
    """`torch.load`, which from a module of fairseq loads safely, and from elsewhere is what it was."""

    @wraps(load)
    def load_or_load_safely(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        if not is_guarded(sys._getframe(1).f_globals):
            return load(f, map_location, *args, **kwargs)
        state = load_safely(f, map_location)
        mark_named_files(state)
        return state

    return load_or_load_safely


def unpack_safely(load: Any) -> Any:
    """`load_archive_file`, which unpacks the archive that from_pretrained was given. Before Python 3.14, tarfile writes
    wherever an archive says, if it is not told otherwise."""

    @wraps(load)
    def load_archive_file(archive_file: str) -> Any:
        before = vars(tarfile.TarFile)["extraction_filter"]
        folders: set[str] = set()

        def keep_inside(member: tarfile.TarInfo, folder: str) -> tarfile.TarInfo | None:
            folders.add(folder)
            return check_member(member, folder)

        tarfile.TarFile.extraction_filter = staticmethod(keep_inside)
        try:
            return load(archive_file)
        except tarfile.FilterError as error:
            for folder in folders:  # temporary, of fairseq
                shutil.rmtree(folder, ignore_errors=True)
            raise InputError(f"{archive_file} is not unpacked: {error}") from None
        finally:
            tarfile.TarFile.extraction_filter = before

    return load_archive_file


def check_member(member: tarfile.TarInfo, folder: str) -> tarfile.TarInfo | None:
    """A file of an archive, if it is written inside the folder. tarfile would make an absolute name a relative one; but
    fairseq then moves what the names begin with, as they are: `/home` of `/home/you/file`, and `..` of `..a` and `..b`.
    """
    if os.path.isabs(member.name):
        raise tarfile.AbsolutePathError(member)
    if any(part.startswith("..") for part in member.name.split("/")):
        raise tarfile.OutsideDestinationError(member, os.path.join(folder, member.name))
    return tarfile.data_filter(member, folder)


def explain_models(load: Any) -> Any:
    """`load_model_ensemble_and_task`, with an error message for options and dictionaries that do not match."""

    @wraps(load)
    def load_models(filenames: Sequence[str], *args: Any, **kwargs: Any) -> Any:
        paths = ", ".join(map(str, filenames))
        try:
            return load(filenames, *args, **kwargs)
        except NotALiteral as error:
            raise InputError(f"{paths} is not loaded: {error}") from None
        except RuntimeError as error:
            if found := other_dictionary(paths, error):
                raise found from None
            raise

    return load_models


def explain_restoring(load_checkpoint: Any) -> Any:
    """The trainer's `load_checkpoint`, with the same error message."""

    @wraps(load_checkpoint)
    def load(trainer: Any, filename: str, *args: Any, **kwargs: Any) -> Any:
        try:
            return load_checkpoint(trainer, filename, *args, **kwargs)
        except Exception as error:  # fairseq hides what went wrong behind one of its own
            if error.__context__ and (found := other_dictionary(filename, error.__context__)):
                raise found from None
            raise

    return load


def other_dictionary(path: str, error: BaseException) -> InputError | None:
    """The error if a model does not fit because a dictionary is not the one that it was trained with."""
    mismatch = r"size mismatch for (en|de)coder\.embed_tokens\.weight: .*?Size\(\[(\d+), .*?Size\(\[(\d+), "
    for side, trained, now in re.findall(mismatch, str(error)):
        if trained != now:
            return InputError(
                f"{path} was trained with {trained} entries in the dictionary of the "
                f"{'source' if side == 'en' else 'target'} side, and now it has {now}: the dictionary has changed. "
                f"Use the one that it was trained with, or train again, with another --save-dir"
            )
    return None


def mark_named_files(state: Any) -> None:
    """Marks the files that options of a checkpoint name. What the user names comes later, and replaces them."""
    for node in options_of(state):
        if isinstance(node, dict):
            for option in file_options() & node.keys():
                if isinstance(node[option], str):
                    node[option] = OF_CHECKPOINT + node[option].removeprefix(OF_CHECKPOINT)


def copy_whole(src_path: str, dst_path: str) -> bool:
    with whole(dst_path) as part:
        shutil.copyfile(src_path, part)
    return True


def save_at_the_end_of_epochs_too(save_checkpoint: Any) -> Any:
    """checkpoint_EPOCH_UPDATES.pt for every multiple of --save-interval-updates."""

    @wraps(save_checkpoint)
    def save(cfg: Any, trainer: Any, epoch_itr: Any, val_loss: Any) -> Any:
        saved = save_checkpoint(cfg, trainer, epoch_itr, val_loss)
        updates, suffix = trainer.get_num_updates(), trainer.checkpoint_suffix
        last = os.path.join(cfg.save_dir, f"checkpoint_last{suffix}.pt")
        due = cfg.save_interval_updates > 0 and updates % cfg.save_interval_updates == 0 and epoch_itr.end_of_epoch()
        writes = trainer.should_save_checkpoint_on_current_rank and not (cfg.no_save or cfg.no_last_checkpoints)
        if due and writes and not PathManager.path_requires_pathmanager(last):
            copy_whole(last, os.path.join(cfg.save_dir, f"checkpoint_{epoch_itr.epoch}_{updates}{suffix}.pt"))
            if cfg.keep_interval_updates > 0:
                remove_old(cfg, rf"checkpoint_\d+_(\d+){suffix}\.pt")
        return saved

    return save


def remove_old(cfg: Any, pattern: str) -> None:
    """Removes all but the last --keep-interval-updates, which fairseq does within an epoch only."""
    found = checkpoint_utils.checkpoint_paths(cfg.save_dir, pattern=pattern, keep_match=True)  # the newest first
    every = cfg.keep_interval_updates_pattern
    counted = [path for path, updates in found if every == -1 or updates % every != 0]
    for path in counted[cfg.keep_interval_updates :]:
        os.remove(path)


def copy_checkpoints_whole(copy: Any) -> Any:
    """`PathManager.copy`, by which fairseq makes checkpoint_last.pt."""

    def copy_checkpoint(src_path: str, dst_path: str, overwrite: bool = False) -> Any:
        remote = PathManager.path_requires_pathmanager(src_path) or PathManager.path_requires_pathmanager(dst_path)
        return copy(src_path, dst_path, overwrite) if remote else copy_whole(src_path, dst_path)

    return staticmethod(copy_checkpoint)
