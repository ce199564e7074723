"""The prompt files of a run: those that Tilewright brings, and a person's pack in place of some of them. Checks a pack
against the files that it replaces; knows slots, not what is filled into them."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from engine.errors import PromptError
from engine.search.prompting import PROMPTS, slots_of
from storage import untrusted
from storage.run.settings import Prompts
from storage.untrusted import UntrustedError

# What a reply cannot do without, and a person's words. Other slots of a file may be left out by a pack.
NEEDED = {"task", "listing", "kernel", "failure", "report", "names", "summary", "operators", "rules", "hint", "hints"}
# What `open_conversation` fills in every system prompt that has it.
IN_SYSTEM = {"language", "language_rule", "toolchain", "library", "precision", "device", "contract"}


MOST_FILES = 1000


def shipped() -> Prompts:
    """The prompts of a run without a pack."""
    return with_pack("", {})


def read_pack(folder: Path) -> Prompts:
    """The prompts of a run with the pack in `folder`.

    Raises:
        PromptError: there is no such folder, or a file of it cannot take the place of a shipped one.
    """
    files = _texts(folder)
    if not files:
        raise PromptError(f"no prompt files in {folder}: a pack is a folder with files named as in {PROMPTS}")
    check(folder, files)
    return with_pack(str(folder.absolute()), files)


def with_pack(folder: str, files: Mapping[str, str]) -> Prompts:
    """These texts by name in place of the files that Tilewright brings today."""
    brought = _texts(PROMPTS)
    return Prompts(_hash({**brought, **files}), _hash(brought), folder, dict(files))


def check(folder: str | Path, files: Mapping[str, str]) -> None:
    """See that each text can take the place of the shipped file of its name.

    Raises:
        PromptError: not all can; names every file and slot.
    """
    brought = _texts(PROMPTS) if files else {}
    faults = [f"{name}: {fault}" for name, text in files.items() for fault in _faults(name, text, brought)]
    if faults:
        raise PromptError("\n  ".join([f"the prompt pack {folder} cannot be used:", *faults]))


def changes(prompts: Prompts) -> Iterator[str]:
    """What has become of a run's prompts since it began, a sentence each; nothing of runs that did not keep them."""
    if prompts.folder:
        try:
            became = "" if _texts(Path(prompts.folder)) == prompts.files else "has changed since the run began"
        except PromptError:
            became = "cannot be read any longer"
        if became:
            yield f"the prompt pack {prompts.folder} {became}: the run keeps the texts that it began with"
    if prompts.shipped and prompts.shipped != shipped().shipped:
        rest = " where its pack has none of its own" if prompts.files else ""
        yield f"the prompts of Tilewright have changed since the run began: from here on it uses those of today{rest}"


def _faults(name: str, text: str, brought: Mapping[str, str]) -> Iterator[str]:
    template = brought.get(name)
    if template is None:
        near = difflib.get_close_matches(name, brought, 1)
        yield "Tilewright has no prompt file of this name" + (f"; do you mean {near[0]}?" if near else "")
        return
    if not name.endswith(".md"):
        return  # shown as it is
    filled, used = slots_of(template), slots_of(text)
    if Path(name).name.startswith("system"):
        filled |= IN_SYSTEM
    for slot in sorted(used - filled):
        may = f"the slots of this file are {', '.join(sorted(filled))}" if filled else "this file has no slots"
        yield f"nothing fills the slot {{{{ {slot} }}}}; {may}"
    optional = {"task"} if "diagnosis" in used else set()  # whoever wrote the diagnosis has seen the reference
    for slot in sorted((filled & NEEDED) - used - optional):
        yield f"the slot {{{{ {slot} }}}} is missing, and a reply needs what stands there"


def _texts(folder: Path) -> dict[str, str]:
    """The files of a folder of prompts by name; hidden ones do not count."""
    if not folder.is_dir():
        raise PromptError(f"there is no folder {folder}: a prompt pack is a folder with files named as in {PROMPTS}")
    paths = {path.relative_to(folder): path for path in sorted(folder.rglob("*")) if not path.is_dir()}
    if len(paths) > MOST_FILES:
        raise PromptError(f"{folder} has {len(paths):,} files: a prompt pack has {MOST_FILES} at most")
    shown = {name: path for name, path in paths.items() if not any(part[:1] in "._" for part in name.parts)}
    return {name.as_posix(): _text(path) for name, path in shown.items()}


def _text(path: Path) -> str:
    try:
        return untrusted.read_text(path)
    except (FileNotFoundError, UntrustedError) as error:
        raise PromptError(f"the prompt file {path} cannot be read: {error}") from error


def _hash(files: Mapping[str, str]) -> str:
    whole = hashlib.sha256()
    for name in sorted(files):
        for part in (name, files[name]):
            whole.update(f"{len(part.encode())}:{part}".encode())
    return whole.hexdigest()
