"""The seam between loop and language: what a kernel's source must look like. Knows no model, no compiler, no run.

cute.py, cuda.py, triton.py, cute_dsl.py     the languages
structure.py                    what the first two share: the C++ in a file, and what one version lost of the other
decorated.py                    what the other two share: kernels that are Python functions under a decorator

A language's prompt texts lie in `prompts/languages/<name>`: words for the slots of texts that all languages share,
texts of its own in place of such (`prompting.in_language`), and its example kernels in `examples/<device>`. A source is
built by what it asks for when it is imported (`load_inline`, `engine/evaluator/build`); a compile step of another kind
belongs into `engine/evaluator/processes/process.py`, where the request names the language. Errors, with the line of the
candidate's file, and resources (registers, spills, shared memory) are reported as a `CompileResult` in any case.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from engine.errors import EngineError
from engine.evaluator.build.just_in_time import Compiler
from engine.evaluator.languages import cute_dsl
from engine.evaluator.languages.cuda import Cuda
from engine.evaluator.languages.cute import Cute
from engine.evaluator.languages.cute_dsl import CuteDsl
from engine.evaluator.languages.triton import Triton, kernel_names
from engine.evaluator.toolchain_table import TABLE, device_of


class Language(Protocol):
    """One way to write a kernel. Sources are whole candidate files, also such as do not parse; no method raises.

    Attributes:
        name: as settings, folders of prompts and evidence name it.
        label: for people, in a word or two.
        title: for people who do not know it.
        devices: where its kernels run: HOST, GPU.
        suffix: that of a file which held the kernel alone, `cpp`: a fence in a prompt is named by it.
        imports: modules that a source may import beyond those that every candidate may.
        compiler: what compiles kernels when they are launched, so that building one means to call it; None where
            kernels are built beforehand.
        interpreted: where its kernels are checked by an interpreter, without a timing; no run can be made of that.
    """

    name: str
    label: str
    title: str
    devices: tuple[str, ...]
    suffix: str
    imports: tuple[str, ...]
    compiler: Compiler | None
    interpreted: tuple[str, ...]

    def lacks(self, source: str) -> str:
        """What a source must have to be a kernel of this language and has not, and what to do, as sentences for the
        model; empty when it is one, and when it is no Python, which is for the compiler to say."""
        ...

    def lost(self, parent: str, child: str) -> str:
        """What a version lost of its parent's structure, as a sentence; empty when it still has most of it."""
        ...

    def cut(self, example: str) -> str:
        """The kernel and its launcher alone, without includes, bindings and the Python around them."""
        ...


DEFAULT = "cute"
LANGUAGES: Mapping[str, Language] = {language.name: language for language in (Cute(), Cuda(), Triton(), CuteDsl())}
__all__ = [
    "DEFAULT",
    "LANGUAGES",
    "CuteDsl",
    "Language",
    "Triton",
    "beginnings",
    "check",
    "find",
    "kernel_names",
    "label",
    "of",
    "of_toolchain",
    "title",
    "untimed",
    "written_in",
]


def find(name: str) -> Language:
    """The language of a name; of a run that names none, CuTe.

    Raises:
        EngineError: there is none of this name.
    """
    if (language := LANGUAGES.get(name or DEFAULT)) is None:
        raise EngineError(f"unknown language {name!r}: use {', '.join(LANGUAGES)}")
    return language


def written_in(source: str) -> str:
    """The language of a file of any language by name, as far as it decides how the file is built: Triton or CuTe DSL
    where it has a kernel of theirs, else empty."""
    if kernel_names(source):
        return Triton.name
    return CuteDsl.name if cute_dsl.kernel_names(source) else ""


def beginnings(source: str) -> tuple[str, ...]:
    """How the names of kernels begin in the driver's records that are a file's own, where its language adds to them."""
    return tuple(sorted(map(cute_dsl.device_name, cute_dsl.kernel_names(source))))


def of(source: str, named: str = "") -> Language:
    """The language of a file: the one that was `named`, else what its text says."""
    return find(named or written_in(source))


def untimed(language: str, source: str, toolchain: str) -> str:
    """Why a kernel is checked on a toolchain and not timed, as a sentence; empty where it is timed.

    `language` may be empty for any.
    """
    of_source = of(source, language)
    if device_of(toolchain) not in of_source.interpreted:
        return ""
    return f"checked with {of_source.label}'s interpreter; not timed: {of_source.label} kernels are timed on a GPU"


def title(name: str) -> str:
    """A language for people who do not know it; the name itself where this version does not know it."""
    return LANGUAGES[name].title if name in LANGUAGES else name


def label(name: str) -> str:
    """A language for people, short; the name itself where this version does not know it."""
    return LANGUAGES[name].label if name in LANGUAGES else name


def of_toolchain(toolchain: str) -> list[str]:
    """The names of the languages whose kernels a toolchain can run, the default one first."""
    return [name for name, language in LANGUAGES.items() if device_of(toolchain) in language.devices]


def check(name: str, toolchain: str) -> None:
    """See that a toolchain can run a language's kernels.

    Raises:
        EngineError: it cannot, or there is no such language.
    """
    if device_of(toolchain) in find(name).devices:
        return
    usable = " or ".join(other for other in TABLE if device_of(other) in find(name).devices)
    others = " or ".join(of_toolchain(toolchain))
    checked = (
        f". `python -m engine evaluate TASK FILE --language {name} --toolchain {toolchain}` checks one kernel with "
        f"{find(name).label}'s interpreter, without timing it"
    )
    raise EngineError(
        f"kernels in {find(name).label} do not run on the toolchain {toolchain}: choose the toolchain {usable}, or the "
        f"language {others}{checked if device_of(toolchain) in find(name).interpreted else ''}"
    )
