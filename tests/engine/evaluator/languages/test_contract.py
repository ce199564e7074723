"""What holds for every language: its texts, its examples, what its kernels must look like, and where they run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from engine import supervisor
from engine.errors import EngineError
from engine.evaluator import languages
from engine.evaluator.checks.screening import Rule, screen
from engine.evaluator.languages import LANGUAGES, Language
from engine.evaluator.toolchain_table import TABLE
from engine.search import exemplars, prompting
from engine.search.prompting import PROMPTS, slots
from storage.results.policy import Policy
from storage.results.vocabulary import KernelClass
from tests.engine.evaluator.checks.screening.candidates import SWISH

HEAD = "import torch\nfrom torch.utils.cpp_extension import load_inline\n\n"
MODULE = 'e = load_inline(name="e", cpp_sources="", cuda_sources=S)\n\nclass ModelNew(torch.nn.Module): ...\n'
RAW = "__global__ void k(float* x) { x[0] = 1; }\nvoid f(float* x) { k<<<1, 1>>>(x); }"
PLAIN = "void f(float* x) { x[0] = 1; }"

TRITON = """import torch
import triton
import triton.language as tl


@triton.jit
def double(x, n, TILE: tl.constexpr):
    at = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(x + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)


def doubled(x):
    double[(triton.cdiv(x.numel(), 64),)](x, x.numel(), TILE=64)
    return x


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return doubled(x.clone())
"""

CUTE_DSL = """import cutlass
import cutlass.cute as cute
import torch
from cuda.bindings.driver import CUstream
from cutlass.cute.runtime import from_dlpack


@cute.kernel
def double(x: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    at = block * 64 + thread
    if at < cute.size(x):
        x[at] = 2 * x[at]


@cute.jit
def doubling(x: cute.Tensor, stream: CUstream):
    double(x).launch(grid=[cute.ceil_div(cute.size(x), 64), 1, 1], block=[64, 1, 1], stream=stream)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = x.clone()
        doubling(from_dlpack(y.view(-1)), CUstream(torch.cuda.current_stream().cuda_stream))
        return y
"""


def written(cpp: str) -> str:
    """A module that builds this C++."""
    return f'{HEAD}S = r"""\n{cpp}\n"""\n{MODULE}'


# Kernels that are none of a language's, with what the refusal says.
OTHERS: Mapping[str, Mapping[str, str]] = {
    "cute": {
        written(RAW): "nothing of CuTe",
        written(f"#include <cute/tensor.hpp>\nusing namespace cute;\n// make_tensor\n{PLAIN}"): "nothing of CuTe",
    },
    "cuda": {
        SWISH: "no kernel is defined",
        written(f"// __global__ k<<<1, 1>>>()\n{PLAIN}"): "no kernel is defined",
        written(RAW.replace("k<<<1, 1>>>(x);", "")): "never launched",
        written(f"#include <cute/tensor.hpp>\n{RAW}"): "include <cute/",
        written(RAW.replace("x[0] = 1", "x[0] = cute::max(1, 2)")): "cute::",
    },
    "triton": {
        written(RAW): "no kernel is defined",
        TRITON.replace("@triton.jit", "@torch.no_grad()"): "no kernel is defined",
        TRITON.replace("double[(triton.cdiv(x.numel(), 64),)](x, x.numel(), TILE=64)", "x.mul_(2)"): "never started",
        TRITON.replace("return doubled(", "return torch.clone("): "never started",
        f"{TRITON}\nfrom torch.utils.cpp_extension import load_inline\n": "builds C++",
    },
    "cute_dsl": {
        written(RAW): "no kernel is defined",
        TRITON: "no kernel is defined",
        CUTE_DSL.replace("@cute.kernel", "@cute.jit"): "no kernel is defined",
        CUTE_DSL.replace(".launch(", ".start("): "no kernel is launched",
        CUTE_DSL.replace("doubling(from_dlpack", "torch.add(from_dlpack"): "no kernel is launched",
        f"{CUTE_DSL}\nfrom torch.utils.cpp_extension import load_inline\n": "uses another language",
        f"import triton\n{CUTE_DSL}": "uses another language",
    },
}
pytestmark = pytest.mark.parametrize("language", LANGUAGES.values(), ids=lambda one: one.name)


def toolchains(language: Language) -> list[str]:
    return [name for name in TABLE if language.name in languages.of_toolchain(name)]


def test_a_language_is_found_by_its_name_and_runs_somewhere(language: Language) -> None:
    assert languages.find(language.name) is language
    assert toolchains(language)
    assert languages.title(language.name) == language.title


def test_a_run_on_a_toolchain_that_cannot_run_it_is_refused_before_it_starts(language: Language) -> None:
    for toolchain in TABLE:
        if toolchain in toolchains(language):
            languages.check(language.name, toolchain)
        else:
            with pytest.raises(EngineError, match=f"do not run on the toolchain {toolchain}: choose the toolchain"):
                supervisor.new_settings("swish", toolchain=toolchain, model="manual", language=language.name)


def test_every_word_that_shared_texts_ask_for_is_there(language: Language) -> None:
    own = {path.stem for path in (PROMPTS / "languages" / language.name).glob("*.md")}
    shared = ["system.md", "synthesise.md", "debugging.md", *(f"toolchains/{name}.md" for name in toolchains(language))]
    asked = {slot for name in shared for slot in slots(prompting.for_language(name, language.name))}
    assert own >= {"language", "language_rule", "start", "keep", "layouts"} & asked
    assert own >= {"language"}


def test_its_examples_are_kernels_of_it_and_are_cut_to_the_kernel(language: Language) -> None:
    for toolchain in toolchains(language):
        known = exemplars.table(toolchain, language.name)
        assert set(known.gates) == set(KernelClass)
        assert all("class ModelNew" in exemplars.opening(toolchain, name, language.name) for name in KernelClass)
        for name in known.examples:
            source = exemplars.source(toolchain, name, language.name)
            assert language.lacks(source) == "", name
            cut = language.cut(source)
            assert len(cut) < len(source), name
            assert not any(sign in cut for sign in ("class ModelNew", "load_inline(", "#include", "import torch")), name


def test_a_kernel_of_another_language_is_refused_with_what_it_lacks(language: Language) -> None:
    for source, said in OTHERS[language.name].items():
        found = [one for one in screen(source, Policy(), language.name) if one.rule is Rule.LANGUAGE]
        assert [said in one.message and one.is_refusal for one in found] == [True], (said, found)
        assert not [one for one in screen(source, Policy()) if one.rule is Rule.LANGUAGE]


@pytest.mark.parametrize("text", ["def f(:", "\x00", "(" * 5_000, ""])
def test_no_text_breaks_it(language: Language, text: str) -> None:
    example = exemplars.opening(toolchains(language)[0], "other", language.name)
    assert isinstance(language.lacks(text), str)
    assert language.lost(example, text)
    assert language.lost(text, example) == ""
    assert language.cut(text) == text.strip()


def test_a_version_that_builds_nothing_has_lost_its_structure(language: Language) -> None:
    for path in sorted((PROMPTS / prompting.for_language("examples", language.name)).rglob("*.py")):
        source = path.read_text()
        assert language.lost(source, source) == ""
        assert language.lost(source, "class ModelNew: pass\n")


def test_nothing_of_another_language_stands_among_its_texts(language: Language) -> None:
    others = {"cute": "<cute/", "cuda": "cute::", "triton": "tl.load"}
    for path in sorted(Path(PROMPTS / "languages" / language.name).rglob("*.md")):
        text = path.read_text()
        assert not [word for name, word in others.items() if name != language.name and word in text], path
