"""What a package takes of one run: its best kernel, the reference at each size that it was judged at, what is built."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from engine import exporting
from engine.errors import EngineError
from engine.evaluator import languages
from engine.evaluator.build.host import flags
from engine.evaluator.tasks.constants import set_constants
from engine.evaluator.toolchain_table import HOST, device_of
from engine.packaging import calls, literals, rewriting
from engine.packaging.described import described
from engine.packaging.literals import Build, Unreadable
from engine.packaging.template.package._entries import Entry, Input
from storage.results.deployment import Trait
from storage.run import labels
from storage.run.blobs import Blobs
from storage.run.folder import RunFolder
from storage.run.record import Candidate, Record

CUTE = re.compile(r"\bcu(te|tlass)\b")
OWN_BINDING = re.compile(r"\bPYBIND11_MODULE\b|\bTORCH_LIBRARY")
CHARACTERS = 2000  # of C++, for which a build takes about five seconds; what it takes is told in advance
FLOATS = frozenset({"float64", "float32", "float16", "bfloat16"})


@dataclass(frozen=True, slots=True)
class PackagedKernel:
    """One kernel and all that a package says of it."""

    number: int
    """In the package, from 1."""
    run_id: str
    record: Record
    candidate: Candidate
    source: str
    """As it was judged."""
    text: str
    """As it stands in the package."""
    how: str
    references: Mapping[str, str]
    """Texts of references, by the name of their module."""
    entries: tuple[Entry, ...]
    builds: Mapping[str, Mapping[str, Any]]
    """What is compiled, by the library's name: the arguments that load_inline had."""
    only_children: Mapping[str, str] = field(default_factory=dict)
    mark: str = ""
    """What a person found who read it."""

    @property
    def name(self) -> str:
        """Its module in the package."""
        return f"kernel_{self.number}"

    @property
    def is_cuda(self) -> bool:
        """Whether it runs on a GPU."""
        return device_of(self.record.settings.toolchain) != HOST

    @property
    def uses_cute(self) -> bool:
        """Whether building it takes the CuTe headers."""
        names = ("cpp_sources", "cuda_sources")
        return any(CUTE.search("\n".join(texts(build, name))) for build in self.builds.values() for name in names)

    @property
    def hash(self) -> str:
        """Of the text that was judged."""
        return hashlib.sha256(self.source.encode()).hexdigest()


def of_run(folder: RunFolder, candidate_id: str | None, number: int, sizes: str) -> PackagedKernel:
    """A run's best kernel, or another one of it, as the package's kernel `number`.

    Raises:
        EngineError: there is no correct kernel, or one that a package cannot hold; says why.
    """
    record = exporting.read_record(folder)
    candidate = exporting.kernel_of(folder, record, candidate_id) if candidate_id else record.best
    if candidate is None:
        raise EngineError(f"run {folder.run_id} has no correct kernel yet, so there is nothing to package")
    source = Blobs(folder.blobs).get(candidate.created.source_blob)
    try:
        module = ast.parse(source)
        built = literals.builds(module)
    except SyntaxError as error:
        raise EngineError(f"the kernel of run {folder.run_id} is not valid Python: {error}") from error
    except Unreadable as error:
        raise EngineError(
            f"the C++ of run {folder.run_id}'s kernel cannot be read from its text ({error}): take another kernel "
            "with --candidate, or submit it with its texts written out"
        ) from error
    mark = labels.read(folder).mark_of(candidate.candidate_id)
    kernel = _packaged(folder.run_id, record, candidate, source, module, built, number, sizes)
    return replace(kernel, mark=mark.in_words) if mark else kernel


def _packaged(
    run_id: str,
    record: Record,
    candidate: Candidate,
    source: str,
    module: ast.Module,
    built: Sequence[Build],
    number: int,
    sizes: str,
) -> PackagedKernel:
    name = f"kernel_{number}"
    libraries = {build: name if len(built) == 1 else f"{name}_{place}" for place, build in enumerate(built, 1)}
    is_triton = languages.written_in(source) == languages.Triton.name
    mode = record.settings.policy.mode
    seen = [(text, described(text, f"run {run_id}", mode)) for text in _references(record)]
    first = seen[0][1]
    direct = None
    if not any(OWN_BINDING.search("\n".join(texts(build.arguments, "cpp_sources"))) for build in built):
        direct = calls.direct_call(
            module,
            {build.node: place for place, build in enumerate(built)},
            [name for name, *_ in first["inputs"]],
            [name for name, *_ in first["state"]],
            by_name=first["by_name"],
            strided=frozenset(name for name, *_, stride in (*first["inputs"], *first["state"]) if stride),
        )
    if record.settings.policy.backward:
        direct = None  # the module records its own gradients
    is_seen_through = is_triton and any(calls.launches(module)) and not calls.hands_over_floats(module)
    how = "cpp" if direct else "triton" if is_seen_through else "python"
    if how == "triton":
        text = rewriting.with_wrapped_launches(source, module)
    else:
        text = rewriting.with_libraries(source, module, libraries) if built else source
    references = {f"reference_{number}" if place == 0 else f"reference_{number}_{place + 1}": text
                  for place, (text, _) in enumerate(seen)}  # fmt: skip
    operator = f"{direct.function}_{number}" if direct else f"forward_{number}"
    seen_alone = record.deployments.get(candidate.candidate_id)
    entries = tuple(
        Entry(
            kernel=name,
            reference=reference,
            operator=operator,
            how=how,
            device="cpu" if device_of(record.settings.toolchain) == HOST else "cuda",
            inputs=_inputs(answer["inputs"], record.settings.policy.dtype),
            state=_inputs(answer["state"], record.settings.policy.dtype),
            outputs=answer["outputs"],
            output_strides=_strides(answer, sizes) if len(seen) == 1 else (),
            arguments=direct.arguments if direct else (),
            capabilities=_capabilities(record),
            sizes=sizes,
            mode=mode,
            by_name=answer["by_name"],
            has_backward=record.settings.policy.backward,
            is_capturable=_known(seen_alone.capture) if seen_alone else None,
            follows_stream=_known(seen_alone.stream) if seen_alone else None,
        )
        for reference, (_, answer) in zip(references, seen, strict=True)
    )
    return PackagedKernel(
        number, run_id, record, candidate, source, text, how, references, entries,
        {library: build.arguments for build, library in libraries.items()},
        {reference: answer["only_child"] for reference, (_, answer) in zip(references, seen, strict=True)
         if answer["only_child"]},
    )  # fmt: skip


def _strides(answer: Mapping[str, Any], sizes: str) -> tuple[tuple[int, ...], ...]:
    """Of results at the sizes that the kernel was judged at; they say nothing of others."""
    strides = tuple(tuple(stride) for stride in answer["output_strides"])
    return strides if sizes == "exact" and any(strides) else ()


def _known(trait: Trait) -> bool | None:
    return None if trait is Trait.NOT_TRIED else trait is Trait.HELD


def _references(record: Record) -> list[str]:
    """The reference at its own sizes, and at each further workload, every one of which was checked and timed."""
    source = record.settings.task_source
    others = (set_constants(source, workload) for workload in record.settings.policy.workloads)
    return list(dict.fromkeys([source, *others]))


_DTYPES = {"bf16": "bfloat16", "fp16": "float16"}


def _inputs(plain: Sequence[Sequence[Any]], dtype: str) -> tuple[Input, ...]:
    """Tensors in the dtype that the run converted them to."""
    wanted = _DTYPES.get(dtype, "")
    return tuple(
        Input(name, wanted if wanted and kind in FLOATS else kind, tuple(shape), tuple(stride))
        for name, kind, shape, stride in plain
    )


def _capabilities(record: Record) -> tuple[tuple[int, int], ...]:
    """Of the GPU that the kernel was judged on."""
    if device_of(record.settings.toolchain) == HOST:
        return ()
    if not (architecture := architecture_of(record)):
        return ()
    digits = re.sub(r"\D", "", architecture)
    return ((int(digits[:-1]), int(digits[-1])),)


def architecture_of(record: Record) -> str:
    """`90a`: of the GPU that the run's kernels were judged on; empty where the run does not tell."""
    facts = record.limit.facts if record.limit else None
    return facts.architecture.removeprefix("sm_") if facts else ""


def texts(arguments: Mapping[str, Any], name: str) -> list[str]:
    """An argument of load_inline that is one text or several, as a list."""
    given = arguments.get(name) or []
    return [given] if isinstance(given, str) else list(given)


def compiled(kernel: PackagedKernel, package: str, architectures: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What `_build` of a package reads, library by library, without the texts."""
    return {name: _compiled(kernel, package, arguments, architectures) for name, arguments in kernel.builds.items()}


def _compiled(
    kernel: PackagedKernel, package: str, arguments: Mapping[str, Any], architectures: Sequence[str]
) -> dict[str, Any]:
    cpp, cuda = texts(arguments, "cpp_sources"), texts(arguments, "cuda_sources")
    text = "\n".join([*cpp, *cuda])
    is_cuda = any(part.strip() for part in cuda)
    own, own_cuda = texts(arguments, "extra_cflags"), texts(arguments, "extra_cuda_cflags")
    own_names = any("arch" in flag or "gencode" in flag for flag in own_cuda)
    return {
        "package": package,
        "functions": texts(arguments, "functions"),
        "suffix": f"_{kernel.number}",
        "sources": ["main.cpp", *(["kernels.cu"] if is_cuda else [])],
        "has_own_binding": bool(OWN_BINDING.search("\n".join(cpp))),
        "is_cuda": is_cuda,
        "uses_cute": bool(CUTE.search(text)),
        "cflags": [*flags.BASE, *own, *flags.LAST, "-w"] if not is_cuda else ["-O3", "-std=c++20", "-w", *own],
        "cuda_flags": ["-O3", "-std=c++20", "-w", *own_cuda],
        "link_flags": [*texts(arguments, "extra_ldflags"), *([] if is_cuda else ["-fopenmp"])],
        "names_architecture": own_names,
        "architectures": list(architectures),
        "seconds": max(20, len(text) // CHARACTERS * 5) + (30 if is_cuda and CUTE.search(text) else 0),
        "hash": hashlib.sha256(repr((text, own, own_cuda)).encode()).hexdigest(),
    }
