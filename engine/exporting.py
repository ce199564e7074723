"""A kernel of a run as one file that plain PyTorch and KernelBench's evaluator can load. Builds nothing.

The functions whose names start with `_tilewright` are what such a file brings along: their text is copied into it, so
they use nothing of this module, and what they import is imported inside of them.
"""

import ast
import inspect
import json
import pprint
import re
from collections.abc import Iterator
from typing import Any

from engine.errors import EngineError
from engine.evaluator import languages, tasks
from engine.evaluator.build.host import flags
from engine.evaluator.build.light_headers import SHIM
from engine.evaluator.toolchain_table import GPU, HOST, device_of
from storage import codec
from storage.results import relative
from storage.results.check_records import CheckOutcome
from storage.results.evaluation_results import TimingResult
from storage.results.hardware_limit import REACHED
from storage.results.policy import kept_rules
from storage.run import journal
from storage.run.blobs import Blobs
from storage.run.folder import RunFolder
from storage.run.record import Candidate, Record
from storage.run.settings import RunSettings

NEEDS = {
    HOST: """# Runs on the CPU. Needs PyTorch, ninja, a C++ compiler and, from pip, nvidia-cutlass, nvidia-cuda-runtime,
# nvidia-cuda-cccl and nvidia-cuda-crt: headers only, no GPU.""",
    GPU: """# Runs on an NVIDIA GPU. Needs a CUDA build of PyTorch, the CUDA toolkit (nvcc), ninja, a C++ compiler
# and CUTLASS: pip install nvidia-cutlass, or set CUTLASS_PATH.""",
}
NEEDS_TRITON = """# Runs on an NVIDIA GPU. Needs a CUDA build of PyTorch, which brings Triton along, and a C compiler.
# Import it from a file: Triton reads the text of its kernels there (KernelBench: backend triton)."""
STATE = "state_dict"  # the check of it, as engine.evaluator.checks.findings names it
MARK = "# The kernel, as Tilewright judged it. What stands above builds it with PyTorch alone."
MARK_OF_TRITON = "# The kernel, as Tilewright judged it."
SOLUTIONS = SOL_EXECBENCH, FLASHINFER_BENCH = "sol-execbench", "flashinfer-bench"
ENTRY = "tilewright_run"
_WRAPPED = re.compile(r"_tilewright\(([\w.\s]+?)(?:, \*_TILEWRIGHT_HOST)?\)")


def exported(folder: RunFolder, candidate_id: str | None) -> str:
    """A run's best kernel, or another one, as a file that stands alone.

    Raises:
        EngineError: no such kernel, none that is correct yet, or one that is not valid Python.
    """
    record = read_record(folder)
    candidate = kernel_of(folder, record, candidate_id) if candidate_id else record.best
    if candidate is None:
        raise EngineError(f"run {folder.run_id} has no correct kernel yet")
    source = Blobs(folder.blobs).get(candidate.created.source_blob)
    number = record.number(candidate.candidate_id)
    try:
        text = standing_alone(source, record.settings.toolchain)
    except SyntaxError as error:
        raise EngineError(f"kernel {number} of run {folder.run_id} is not valid Python: {error}") from error
    return f"{_heading(folder.run_id, record, candidate, number)}\n\n\n{text}"


def solution(folder: RunFolder, candidate_id: str | None, form: str) -> str:
    """A run's kernel as a solution of the problem that its task was made from, one of SOLUTIONS, as JSON.

    Raises:
        EngineError: as `exported`; or the task was made from no problem, stands at other constant axes than it, or the
            kernel is one for the CPU.
    """
    text = exported(folder, candidate_id)
    record = read_record(folder)
    settings = record.settings
    problem = tasks.problems.asked_for(settings.task_source)
    if problem is None:
        raise EngineError(
            f"run {folder.run_id} is of the task {settings.task_name}, which was made from no problem of "
            f"{' or '.join(SOLUTIONS)}: leave out --format"
        )
    if device_of(settings.toolchain) == HOST:
        raise EngineError(
            f"run {folder.run_id} made kernels for the CPU, and {form} runs solutions on a GPU: leave out --format"
        )
    if changed := tasks.problems.changed_axes(settings.task_source):
        raise EngineError(
            f"run {folder.run_id} changed what its problem holds constant ({', '.join(changed)}), so its kernels are "
            "no solutions of it: leave out --format"
        )
    definition, inputs = problem
    names, is_triton = ", ".join(inputs), settings.language == "triton"
    entry, model = _unused(ENTRY, text), _unused("_TILEWRIGHT_MODEL", text)
    spec: dict[str, Any] = {"entry_point": f"main.py::{entry}", "destination_passing_style": False, "dependencies": []}
    if form == SOL_EXECBENCH:  # C++ that a Python file builds itself counts as Python there
        spec |= {"languages": ["triton" if is_triton else "pytorch"], "target_hardware": ["LOCAL"]}
    else:
        device = record.limit.device.removesuffix(REACHED) if record.limit else settings.toolchain
        spec |= {
            "language": "triton" if is_triton else "python",
            "target_hardware": [device.partition(",")[0].replace(" ", "_")],
        }
    called = f'{model} = ModelNew().to("cuda")\n\n\ndef {entry}({names}):\n    return {model}({names})\n'
    plain = {
        "name": folder.run_id,
        "definition": definition,
        "author": "tilewright",
        "description": text.partition("\n")[0].removeprefix("# "),
        "spec": spec,
        "sources": [{"path": "main.py", "content": f"{text.rstrip()}\n\n\n{called}"}],
    }
    return f"{json.dumps(plain, indent=2)}\n"


def _unused(name: str, text: str) -> str:
    """The name, made longer until the text does not have it: what a kernel calls by it must stay its own."""
    while name in text:
        name += "_"
    return name


def read_record(folder: RunFolder) -> Record:
    """The fold of a run's journal.

    Raises:
        EngineError: its settings cannot be read.
    """
    try:
        return Record.of(folder.read_settings(), list(journal.read(folder.journal_file)))
    except codec.DecodeError as error:
        raise EngineError(f"run.json cannot be read, restore it from a backup: {error}") from error


def kernel_of(folder: RunFolder, record: Record, text: str) -> Candidate:
    """A kernel by its number or its id.

    Raises:
        EngineError: the run has no such kernel.
    """
    name = f"c{int(text):03d}" if text.isdecimal() else text
    if name not in record.candidates:
        raise EngineError(f"run {folder.run_id} has no kernel {text}; it has {len(record.candidates)}: see `show`")
    return record.candidates[name]


def standing_alone(source: str, toolchain: str) -> str:
    """A kernel's source behind what plain PyTorch needs to build it.

    Raises:
        SyntaxError: the source is not valid Python.
    """
    if languages.written_in(source):
        needed = f"{inspect.getsource(_tilewright_triton).rstrip()}\n\n\n_tilewright_triton()"
        return f"{needed}\n{MARK_OF_TRITON}\n{_rewritten(source, '')}"
    is_host = device_of(toolchain) == HOST
    kernel = _rewritten(source, ", *_TILEWRIGHT_HOST" if is_host else "")
    parts = [inspect.getsource(part).rstrip() for part in (_tilewright, _tilewright_headers, _tilewright_arch)]
    if is_host:
        parts.insert(0, f"_TILEWRIGHT_HOST = {pprint.pformat(_host(), width=116, compact=True)}")
    return "\n\n\n".join([*parts, f"{MARK}\n{kernel}"])


def without_support(text: str) -> str:
    """The kernel of an exported file, to be judged once more; any other text as it is."""
    mark = next((marker for marker in (MARK, MARK_OF_TRITON) if f"\n{marker}\n" in text), "")
    kernel = text.partition(f"\n{mark}\n")[2] if mark else text
    return _WRAPPED.sub(r"\1", kernel) if mark else text


def _heading(run_id: str, record: Record, candidate: Candidate, number: int) -> str:
    heading = f"# Kernel {number} of Tilewright run {run_id}, task {record.settings.task_name}"
    if candidate.trusted and record.limit:
        low, high = candidate.trusted.speedup_interval
        sure = f"95 % interval {low:.3g} to {high:.3g}x{'' if low > 1 else ', not faster beyond the noise'}"
        heading += f": {candidate.trusted.speedup:.3g}x eager PyTorch ({sure}) on {record.limit.device}"
        heading += _over_best_alternative(record, candidate.trusted)
    heading += f"; {record.settings.policy.measured}" if record.settings.policy.variant else ""
    is_triton = record.settings.language == "triton"
    notes = "".join(f"\n# {note}" for note in _notes(candidate, record.settings))
    return f"{heading}.{notes}\n{NEEDS_TRITON if is_triton else NEEDS[device_of(record.settings.toolchain)]}"


def _over_best_alternative(record: Record, timed: TimingResult) -> str:
    """The kernel over the fastest baseline beside eager, where that is faster than eager."""
    fastest = record.baseline.result if record.baseline else None
    if record.baseline is None or fastest is None or fastest.speedup <= 1:
        return ""
    over = relative.over(timed.speedup, timed.noise, fastest.speedup, fastest.noise)
    slower = ", slower than it" if over.is_slower else "" if over.is_faster else ", not faster beyond the noise"
    interval = f"{over.low:.3g} to {over.high:.3g}x{slower}"
    return f"; {over.speedup:.3g}x the best alternative, {record.baseline.name} ({interval})"


def _notes(candidate: Candidate, settings: RunSettings) -> Iterator[str]:
    """What whoever uses the kernel must know of its verdict."""
    checked = candidate.checked
    if kept := kept_rules(checked.rules if checked else settings.policy.rules):
        unknown = ": whether it is right with those of a trained model is not known"
        yield f"It was {kept}{unknown if tasks.may_have_weights(settings.task_source) else ''}."
    checks = checked.proofs if checked else ()
    if any(check.check == STATE and check.standing is CheckOutcome.FLAGGED for check in checks):
        yield "It does not load the original's weights: names, shapes or dtypes of its state_dict are others."


def _host() -> tuple[list[str], list[str], list[str]]:
    """What our own builds for the CPU put before a kernel's C++, and the flags before and after its own."""
    texts = (SHIM / "prefix.hpp").read_text() + (SHIM / "vector_length.hpp").read_text()
    ours = re.compile(r'#include (<(torch|tilewright)/|")|#pragma once|//')
    lines = [line for line in texts.splitlines() if line and not ours.match(line)]
    return lines, list(flags.BASE), list(flags.LAST)


def _rewritten(source: str, given: str) -> str:
    """The source with its `load_inline` wrapped, and without `from __future__ import`, before which nothing may stand.

    KernelBench puts lines of its own before a source, as we do.
    """
    module, text = ast.parse(source), source.encode()
    starts = [0, *(match.end() for match in re.finditer(rb"\r\n|\r|\n", text))]
    for node, new in sorted(_changes(module, given), key=lambda change: _place(change[0]), reverse=True):
        (line, column), (last_line, last_column) = _place(node)
        first, last = starts[line - 1] + column, starts[last_line - 1] + last_column
        text = text[:first] + new.format(ast.unparse(node)).encode() + text[last:]
    return text.decode()


def _place(node: Any) -> tuple[tuple[int, int], tuple[int, int]]:
    return (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)


def _changes(module: ast.Module, given: str) -> Iterator[tuple[ast.AST, str]]:
    """What to replace, and by what; `{}` stands for what was there."""
    nodes = list(ast.walk(module))
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    names = {
        alias.asname or alias.name
        for node in imports
        for alias in node.names
        if (node.module, alias.name) == ("torch.utils.cpp_extension", "load_inline")
    }
    future = [node for node in imports if node.module == "__future__"]
    yield from ((node, "pass") for node in future)
    for node in nodes:
        is_name = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names
        if is_name or (isinstance(node, ast.Attribute) and node.attr == "load_inline"):
            yield node, f"_tilewright({{}}{given})"
        for noted in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if future and isinstance(noted, ast.expr):  # as text, which is what that import makes of it
                yield noted, _quoted(ast.unparse(noted))


def _quoted(text: str) -> str:
    return repr(text).replace("{", "{{").replace("}", "}}")


def _tilewright(build: "Any", headers: "Any" = (), first: "Any" = (), last: "Any" = ()) -> "Any":
    """PyTorch's load_inline with what this kernel needs: headers, flags, the GPU's architecture, a name of its own."""
    import fcntl
    import hashlib
    import os
    import re
    import shutil
    import sys
    import sysconfig

    import torch
    from torch.utils import cpp_extension

    path = [*os.environ.get("PATH", "").split(os.pathsep), os.path.dirname(sys.executable)]
    os.environ["PATH"] = os.pathsep.join(dict.fromkeys(path))  # ninja of an environment that is not activated

    def need(program: str, remedy: str) -> None:
        if shutil.which(program) is None:
            raise ImportError(f"This kernel needs {remedy}")

    def listed(words: "Any") -> "Any":
        return [words] if isinstance(words, str) else list(words or ())

    def built(name: str, cpp_sources: "Any", cuda_sources: "Any" = None, *rest: "Any", **options: "Any") -> "Any":
        cpp, cuda = listed(cpp_sources), listed(cuda_sources)
        text, is_cuda = "\n".join(cpp + cuda), any(source.strip() for source in cuda)
        is_cute = re.search(r"\bcu(te|tlass)\b", text) is not None
        for option in ("extra_include_paths", "extra_cflags", "extra_cuda_cflags", "extra_ldflags"):
            options[option] = listed(options.get(option))
        if isinstance(options.get("functions"), tuple):
            options["functions"] = list(options["functions"])
        need(os.environ.get("CXX", "c++").split()[0], "a C++ compiler: apt install g++")
        need("ninja", "ninja: pip install ninja")
        if not os.path.exists(f"{sysconfig.get_paths()['include']}/Python.h"):
            raise ImportError("This kernel needs the headers of Python: apt install python3-dev")
        if is_cuda:
            if not torch.version.cuda:
                raise ImportError("This kernel needs a CUDA build of PyTorch: https://pytorch.org/get-started/locally")
            toolkit = f"nvcc: install the CUDA toolkit {torch.version.cuda}, or set CUDA_HOME to where it is"
            need(f"{cpp_extension.CUDA_HOME}/bin/nvcc", toolkit)
            options["extra_cuda_cflags"] += _tilewright_arch(text, " ".join(options["extra_cuda_cflags"]))
        if is_cute:
            options["extra_include_paths"] = [*_tilewright_headers(bool(headers)), *options["extra_include_paths"]]
        if headers:
            cpp = ["\n".join(line for line in headers if is_cute or "<cute/" not in line), *cpp]
            options["extra_cflags"] = [*first, *options["extra_cflags"], *last]
            options["extra_ldflags"] += ["-fopenmp"]
        keeps = rf"PYBIND11_MODULE\(\s*{name}\b|TORCH_LIBRARY\w*\(\s*TORCH_EXTENSION_NAME\b"
        if not re.search(keeps, text):  # kernels of one name would share a build folder
            name += "_" + hashlib.sha256(repr((cpp, cuda, rest, options)).encode()).hexdigest()[:12]
        folder = options.get("build_directory") or cpp_extension._get_build_directory(name, False)
        with open(os.path.join(folder, "tilewright.lock"), "w") as ours:
            fcntl.flock(ours, fcntl.LOCK_EX)
            # PyTorch's own lock outlives a process that is ended while it builds, and would be waited for without end.
            # Whoever builds this kernel holds ours, so that one belongs to nobody.
            if os.path.exists(os.path.join(folder, "lock")):
                os.remove(os.path.join(folder, "lock"))
            if not os.path.exists(os.path.join(folder, f"{name}.so")):
                print(f"Building {name} in {folder}, once: this takes up to a minute.", file=sys.stderr, flush=True)
            return build(name, cpp, cuda, *rest, **options)

    return built


def _tilewright_triton() -> None:
    """Say what is missing where Triton is not installed."""
    import importlib.util

    if importlib.util.find_spec("triton") is None:
        remedy = "install PyTorch with CUDA, which brings it along: https://pytorch.org/get-started/locally"
        raise ImportError(f"This kernel needs Triton: {remedy}")


def _tilewright_headers(is_host: bool) -> "list[str]":
    """Folders of the CuTe headers and of the CUDA headers that they include."""
    import os
    import sys

    from torch.utils import cpp_extension

    def holding(header: str, folders: "list[str]", remedy: str) -> str:
        for folder in folders:
            if folder and os.path.isfile(f"{folder}/{header}"):
                return folder
        raise ImportError(f"This kernel needs {remedy}")

    chosen = [os.environ.get(name, "") for name in ("TILEWRIGHT_CUTLASS_INCLUDE", "CUTLASS_PATH", "CUTLASS_HOME")]
    folders = [folder for root in chosen if root for folder in (root, f"{root}/include")]
    folders += [f"{folder}/cutlass_library/source/include" for folder in sys.path]
    folders += ["/usr/local/cutlass/include", "/opt/cutlass/include", "/usr/local/include", "/usr/include"]
    remedy = "the CuTe headers: pip install nvidia-cutlass, or set CUTLASS_PATH to a copy of github.com/NVIDIA/cutlass"
    cute = holding("cute/tensor.hpp", folders, remedy)
    folders = [f"{cpp_extension.CUDA_HOME or '/usr/local/cuda'}/include"]  # what nvcc itself reads
    if is_host:
        packages = [f"{folder}/nvidia/cu13/include" for folder in sys.path]
        folders = [os.environ.get("TILEWRIGHT_CUDA_INCLUDE", ""), *packages, *folders]
    names = "nvidia-cuda-runtime==13.0.* nvidia-cuda-cccl==13.0.* nvidia-cuda-crt==13.0.*"
    cuda = holding("crt/host_defines.h", folders, f"the CUDA headers that CuTe includes: pip install {names}")
    return [cute, cuda, f"{cuda}/cccl"]


def _tilewright_arch(text: str, flags: str) -> "list[str]":
    """The flag for the GPU here with the instructions that only it has, unless the kernel names an architecture."""
    import os
    import re

    import torch

    is_hopper = re.search(r"wgmma|SM90_64x|GMMA::", text) is not None
    arch = "90a" if is_hopper else ""
    if torch.cuda.is_available():
        major, minor = torch.cuda.get_device_capability()
        if is_hopper and major != 9 and "__CUDA_ARCH__" not in text:
            raise ImportError(
                f"This kernel needs a Hopper GPU (H100, H200); this one is {torch.cuda.get_device_name()}"
            )
        arch = f"{major}{minor}" + ("a" if major >= 9 else "")
    if "arch" in flags or (not arch and os.environ.get("TORCH_CUDA_ARCH_LIST")):
        return []
    if not arch:
        raise ImportError("This kernel needs a GPU, or TORCH_CUDA_ARCH_LIST (9.0a for an H200) to be built without one")
    return [f"-gencode=arch=compute_{arch},code=sm_{arch}"]
