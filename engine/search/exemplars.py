"""Example kernels that the model is shown: which one opens a first kernel, and which structure a kernel still lacks.
Knows the table beside the files and words of a source, not what a kernel does."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass

from engine.errors import PromptError
from engine.evaluator import languages
from engine.evaluator.languages import DEFAULT
from engine.search import prompting
from storage import codec
from storage.codec import DecodeError
from storage.results.hardware_limit import HardwareLimit
from storage.results.policy import PRECISIONS

COMPUTE = "compute"
_ARCHITECTURE = re.compile(r"sm_(\d+)(a?)")


@dataclass(frozen=True, slots=True)
class Exemplar:
    """One file of examples/<device>. `architecture`: the least that runs it, with an `a` the only one; empty for any.

    Attributes:
        technique: what it shows, as a noun phrase.
        signs: words of which a kernel with that technique has one; empty for what no gate names.
        opens: kernel classes whose first kernel is written after it.
        precision: of a task that may use it, where it does not reach float32's; empty for any.
        bound: `compute` where it pays only if operations limit the task.
        is_run: whether it has been run, not only compiled.
    """

    technique: str
    signs: tuple[str, ...] = ()
    architecture: str = ""
    opens: tuple[str, ...] = ()
    precision: str = ""
    bound: str = ""
    is_run: bool = True


@dataclass(frozen=True, slots=True)
class Table:
    """The examples of a device by file name without suffix; `gates`: names by kernel class, in the order that pays."""

    examples: Mapping[str, Exemplar]
    gates: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Need:
    """What an example is chosen for.

    Attributes:
        kernel_class: of the task.
        architecture: of the device as nvcc calls it, empty where it is not known or is no GPU.
        precision: the task's class.
        is_memory_bound: whether bytes, not operations, are known to limit the task.
    """

    kernel_class: str
    architecture: str = ""
    precision: str = PRECISIONS[0]
    is_memory_bound: bool = False


def architecture_of(limit: HardwareLimit | None) -> str:
    """The architecture of the device that a run has measured, empty where the record does not tell it."""
    architecture = limit.facts.architecture if limit is not None and limit.facts is not None else ""
    return architecture if _ARCHITECTURE.fullmatch(architecture) else ""


def table(toolchain: str, language: str = DEFAULT) -> Table:
    """The examples of a language for a toolchain's device.

    Raises:
        PromptError: the table cannot be read.
    """
    name = f"{_folder(toolchain, language)}/exemplars.toml"
    return _table(name, prompting.text(name))


@functools.lru_cache(maxsize=32)
def _table(name: str, text: str) -> Table:
    try:
        parsed: Table = codec.from_plain(Table, tomllib.loads(text))
    except (tomllib.TOMLDecodeError, DecodeError) as error:
        raise PromptError(f"prompt file {name} cannot be read: {error}") from error
    if unknown := sorted({name for gate in parsed.gates.values() for name in gate} - set(parsed.examples)):
        raise PromptError(f"prompt file {name}: the gates name {', '.join(unknown)}, which [examples] does not have")
    return parsed


def opening(toolchain: str, kernel_class: str, language: str = DEFAULT) -> str:
    """The file after which the first kernel of a class is written: that of the class, or of `other`."""
    examples = table(toolchain, language).examples
    for kernel_class_or_other in (kernel_class, "other"):
        for name, exemplar in examples.items():
            if kernel_class_or_other in exemplar.opens:
                return source(toolchain, name, language)
    raise PromptError(f"{_folder(toolchain, language)}/exemplars.toml has no example that opens `other`")


def lacking(toolchain: str, need: Need, kernel: str, language: str = DEFAULT) -> str:
    """The first structure of the class's gate that a kernel does not have: an example of it, cut to its kernel.

    Empty where it has them all, or the device or the task has no use for the rest.
    """
    exemplars = table(toolchain, language)
    for name in exemplars.gates.get(need.kernel_class, ()):
        exemplar = exemplars.examples[name]
        if fits(exemplar, need) and not any(sign in kernel for sign in exemplar.signs):
            proof = "compiled and run" if exemplar.is_run else "compiled, not run"
            written = languages.find(language)
            return prompting.fill(
                prompting.for_language("exemplar.md", language), technique=exemplar.technique, proof=proof,
                fence=written.suffix, code=written.cut(source(toolchain, name, language)),
            )  # fmt: skip
    return ""


def fits(exemplar: Exemplar, need: Need) -> bool:
    """Whether the device can run it and the task may use it and can gain by it."""
    if exemplar.precision and need.precision == PRECISIONS[0] != exemplar.precision:
        return False
    return runs_on(exemplar, need.architecture) and not (exemplar.bound == COMPUTE and need.is_memory_bound)


def runs_on(exemplar: Exemplar, architecture: str) -> bool:
    """Whether a device of an architecture runs it; of an unknown one only what every device runs counts."""
    needed, here = (_ARCHITECTURE.fullmatch(name) for name in (exemplar.architecture, architecture or "sm_80"))
    if needed is None or here is None:
        return not exemplar.architecture
    if needed[2]:
        return exemplar.architecture == architecture
    return int(here[1]) >= int(needed[1])


def source(toolchain: str, name: str, language: str = DEFAULT) -> str:
    """The whole file of an example."""
    return prompting.text(f"{_folder(toolchain, language)}/{name}.py")


def _folder(toolchain: str, language: str) -> str:
    return prompting.for_language(prompting.for_toolchain("examples", toolchain), language)
