"""What an exported file brings along: the text of these functions is copied into it. Builds and knows nothing here.

They use nothing of this module, and what they import is imported inside of them.
"""

from typing import Any


def _tilewright(build: "Any", headers: "Any" = (), first: "Any" = (), last: "Any" = ()) -> "Any":
    """PyTorch's load_inline with what this kernel needs: headers, flags, architecture, a folder of its own."""
    import fcntl
    import hashlib
    import importlib
    import importlib.util
    import os
    import platform
    import re
    import shutil
    import sys
    import sysconfig
    import types

    import torch
    from torch.utils import cpp_extension

    path = [*os.environ.get("PATH", "").split(os.pathsep), os.path.dirname(sys.executable)]
    os.environ["PATH"] = os.pathsep.join(dict.fromkeys(path))  # ninja of an environment that is not activated

    class Extension(types.ModuleType):
        """A built library that modules may hold, be pickled and copied with."""

        def __reduce_ex__(self, protocol: "Any") -> "Any":
            return importlib.import_module, (self.__name__,)

    def need(program: str, remedy: str) -> None:
        if shutil.which(program) is None:
            raise ImportError(f"This kernel needs {remedy}")

    def listed(words: "Any") -> "Any":
        return [words] if isinstance(words, str) else list(words or ())

    def short(*parts: "Any") -> str:
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]

    def processor() -> str:
        try:
            with open("/proc/cpuinfo") as lines:
                return next(line for line in lines if line.startswith(("flags", "Features")))
        except (OSError, StopIteration):
            return platform.processor() or platform.machine()

    def known(module: "Any") -> "Any":
        if isinstance(module, types.ModuleType):  # by its name, a pickle finds it again
            module.__class__ = Extension
            module.__module__ = module.__name__  # pybind11 names a function's scope by it
            sys.modules.setdefault(module.__name__, module)
        return module

    def loaded(name: str, library: str, is_module: bool) -> "Any":
        if not is_module:
            load: Any = torch.ops.load_library
            load(library)
            return library
        spec: Any = importlib.util.spec_from_file_location(name, library)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return known(module)

    def built(name: str, cpp_sources: "Any", cuda_sources: "Any" = None, *rest: "Any", **options: "Any") -> "Any":
        cpp, cuda = listed(cpp_sources), listed(cuda_sources)
        text, is_cuda = "\n".join(cpp + cuda), any(source.strip() for source in cuda)
        for option in ("extra_include_paths", "extra_cflags", "extra_cuda_cflags", "extra_ldflags"):
            options[option] = listed(options.get(option))
        if isinstance(options.get("functions"), tuple):
            options["functions"] = list(options["functions"])
        keeps = rf"PYBIND11_MODULE\(\s*{name}\b|TORCH_LIBRARY\w*\(\s*TORCH_EXTENSION_NAME\b"
        if not re.search(keeps, text):  # the same on every machine, as pickles name it
            name += "_" + short(cpp, cuda, rest, options)
        if is_cuda and not torch.version.cuda:
            raise ImportError("This kernel needs a CUDA build of PyTorch: https://pytorch.org/get-started/locally")
        arch = _tilewright_arch(text, " ".join(options["extra_cuda_cflags"])) if is_cuda else []
        machine = [arch, os.environ.get("TORCH_CUDA_ARCH_LIST")] if is_cuda else processor()
        python = (torch.__version__, sys.implementation.cache_tag, platform.machine())
        folder = options.get("build_directory") or cpp_extension._get_build_directory(name, False)
        folder = os.path.join(folder, short(cpp, cuda, rest, options, headers, first, last, python, machine))
        finished, is_module = os.path.join(folder, "tilewright.built"), options.get("is_python_module", True)

        def found() -> "Any":
            """What was built, which needs neither compiler nor toolkit; None before that."""
            if not os.path.exists(finished):
                return None
            with open(finished) as file:
                kept = file.read()
            library = os.path.join(folder, f"{kept}.so")
            return loaded(kept, library, is_module) if os.path.exists(library) else None

        if (module := found()) is not None:
            return module
        need(os.environ.get("CXX", "c++").split()[0], "a C++ compiler: apt install g++")
        need("ninja", "ninja: pip install ninja")
        if not os.path.exists(f"{sysconfig.get_paths()['include']}/Python.h"):
            raise ImportError("This kernel needs the headers of Python: apt install python3-dev")
        if is_cuda:
            toolkit = f"nvcc: install the CUDA toolkit {torch.version.cuda}, or set CUDA_HOME to where it is"
            need(f"{cpp_extension.CUDA_HOME}/bin/nvcc", toolkit)
            options["extra_cuda_cflags"] += arch
        is_cute = re.search(r"\bcu(te|tlass)\b", text) is not None
        if is_cute:
            options["extra_include_paths"] = [*_tilewright_headers(bool(headers)), *options["extra_include_paths"]]
        if headers:
            cpp = ["\n".join(line for line in headers if is_cute or "<cute/" not in line), *cpp]
            options["extra_cflags"] = [*first, *options["extra_cflags"], *last]
            options["extra_ldflags"] += ["-fopenmp"]
        os.makedirs(folder, exist_ok=True)
        options["build_directory"] = folder
        with open(os.path.join(folder, "tilewright.lock"), "w") as ours:
            try:
                fcntl.flock(ours, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                print(f"Waiting for another process that builds {name}.", file=sys.stderr, flush=True)
                fcntl.flock(ours, fcntl.LOCK_EX)
            if (module := found()) is not None:
                return module
            # PyTorch's own lock outlives a process that is ended while it builds, and would be waited for without end.
            # Whoever builds this kernel holds ours, so that one belongs to nobody.
            if os.path.exists(os.path.join(folder, "lock")):
                os.remove(os.path.join(folder, "lock"))
            seconds = "60 s, more with many templates" if is_cuda else "15 to 60 s"
            told = f"Building {name}, about {seconds}; the library is kept in {folder}."
            print(told, file=sys.stderr, flush=True)
            if headers and not is_cuda:  # PyTorch's header without its C++ frontend: a third less to read
                light = {**options, "extra_cflags": ["-DTORCH_INDUCTOR_CPP_WRAPPER", *options["extra_cflags"]]}
                try:
                    module = build(name, list(cpp), cuda, *rest, **light)
                except RuntimeError:  # the kernel needs that; PyTorch builds nothing twice under one name
                    name += "_whole"
                    module = build(name, cpp, cuda, *rest, **options)
            else:
                module = build(name, cpp, cuda, *rest, **options)
            if os.path.exists(os.path.join(folder, f"{name}.so")):
                with open(finished, "w") as file:
                    file.write(name)
            return known(module)

    return built


def _tilewright_layout(kernel: "Any", strides: "Any") -> None:
    """Let new modules hold these parameters and buffers with the strides that the kernel was judged with: what is
    loaded into them is copied."""
    import torch

    made = getattr(kernel, "__init__", None)
    if made is None:
        return

    def constructed(self: "Any", *given: "Any", **named: "Any") -> None:
        made(self, *given, **named)
        for name, value in self.state_dict(keep_vars=True).items():
            shape, stride = strides.get(name, (None, None))
            if tuple(value.shape) == shape:
                with torch.no_grad():
                    lying = torch.empty_strided(shape, stride, dtype=value.dtype, device=value.device)
                    value.data = lying.copy_(value)

    kernel.__init__ = constructed


def _tilewright_guard(kernel: "Any", device: str, dtype: str, judged: str, has_backward: bool) -> None:
    """Let the module say what it cannot do, where it would give wrong numbers or end deep in C++."""
    import functools
    import operator

    import torch

    plain = getattr(kernel, "forward", None)
    if plain is None:
        return
    untraced = (
        "This kernel cannot be traced: torch.export, torch.compile(fullgraph=True) and the like need an operator, as "
        "a package brings it (python -m engine package)."
    )
    no_backward = (
        "This kernel has no backward: forward alone was made and judged. For gradients make a run with --backward, or "
        "use the operator of a package (python -m engine package); without them call it under torch.no_grad()."
    )
    is_here = operator.attrgetter(f"is_{device}")
    floating = {torch.float16, torch.bfloat16, torch.float32, torch.float64}
    others = floating - {getattr(torch, dtype)} if dtype else set()
    jit: Any = torch.jit
    is_tracing, is_grad_enabled = jit.is_tracing, torch.is_grad_enabled

    def tensors(values: "Any") -> "Any":
        for value in values:
            if isinstance(value, torch.Tensor):
                yield value
            elif isinstance(value, (tuple, list)):
                yield from tensors(value)
            elif isinstance(value, dict):
                yield from tensors(value.values())

    def replaced(value: "Any", new: "Any") -> "Any":
        """The same tuples, lists and dicts with other tensors."""
        if isinstance(value, torch.Tensor):
            return next(new)
        if isinstance(value, dict):
            return type(value)((name, replaced(part, new)) for name, part in value.items())
        if isinstance(value, (tuple, list)):
            parts = [replaced(part, new) for part in value]
            return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
        return value

    class NoBackward(torch.autograd.Function):
        """Runs the kernel, and says in the backward pass that it has none."""

        @staticmethod
        def forward(ctx: "Any", run: "Any", *needing: "Any") -> "Any":
            return run()

        @staticmethod
        def backward(ctx: "Any", *gradients: "Any") -> "Any":
            raise RuntimeError(no_backward)

    def without_gradients(module: "Any", given: "Any", named: "Any") -> "Any":
        inputs = list(tensors((given, named)))
        needing = [value for value in (*inputs, *module.parameters()) if value.requires_grad]
        if not needing:
            return plain(module, *given, **named)
        answer = None

        def run() -> "Any":
            nonlocal answer
            answer = plain(module, *given, **named)
            held = {id(value) for value in inputs}
            return tuple(value.detach() if id(value) in held else value for value in tensors((answer,)))

        apply: Any = NoBackward.apply
        marked = apply(run, *needing)
        return replaced(answer, iter(marked or ()))

    def see(values: "Any") -> None:
        for value in tensors(values):
            if value.is_meta:
                raise RuntimeError(f"This kernel got a tensor without numbers, on the device meta. {untraced}")
            if not is_here(value) and value.dim():
                raise RuntimeError(f"This kernel runs on {device} and got a tensor on {value.device}: move it there.")
            if value.dtype in others:
                raise TypeError(
                    f"This kernel was judged with {judged} and got {str(value.dtype).partition('.')[2]} of shape "
                    f"{tuple(value.shape)}: convert it with .to(torch.{dtype}), or leave other dtypes to the original "
                    f"module, as a package does (python -m engine package)."
                )

    def has_numbers(value: "Any") -> bool:
        try:
            value.data_ptr()
        except Exception:  # noqa: BLE001 - what a tensor that stands for others says differs from version to version
            return False
        return True

    def explain(error: "Any", given: "Any", named: "Any") -> None:
        inputs = list(tensors((given, named)))
        values = given, named, *(given if isinstance(given, tuple) else ())  # torch.fx puts a symbol for all of them
        is_symbol = any(type(value).__module__.startswith("torch.fx") for value in values)
        if is_symbol or not all(has_numbers(value) for value in inputs):
            raise RuntimeError(untraced) from error
        if hasattr(error, "add_note"):
            got = ", ".join(f"{str(value.dtype).partition('.')[2]} {tuple(value.shape)}" for value in inputs)
            error.add_note(f"This kernel was judged with {judged}; it got {got or 'no tensor'}.")

    def called(self: "Any", given: "Any", named: "Any") -> "Any":
        if is_tracing():
            raise RuntimeError(f"torch.jit.trace would keep this call's memory as its answer. {untraced}")
        try:
            for value in given:
                if type(value) is not torch.Tensor or not is_here(value) or value.dtype in others:
                    see((value,))
            if named:
                see((named,))
            if has_backward or not is_grad_enabled():
                return plain(self, *given, **named)
            return without_gradients(self, given, named)
        except Exception as error:
            if not str(error).startswith("This kernel "):  # that is said by this text
                explain(error, given, named)
            raise

    # Dynamo passes over such a mark on the function that it begins with, and heeds it on one that is called.
    traced: Any = called
    traced._torchdynamo_disable, traced._torchdynamo_disable_msg = True, untraced

    @functools.wraps(plain)
    def forward(self: "Any", *given: "Any", **named: "Any") -> "Any":
        return called(self, given, named)

    kernel.forward = forward


def _tilewright_triton() -> None:
    """Say what is missing where Triton is not installed."""
    import importlib.util

    if importlib.util.find_spec("triton") is None:
        remedy = "install PyTorch with CUDA, which brings it along: https://pytorch.org/get-started/locally"
        raise ImportError(f"This kernel needs Triton: {remedy}")


def _tilewright_cute_dsl() -> None:
    """Say what is missing where CuTe's Python DSL is not installed."""
    import importlib.util

    if importlib.util.find_spec("cutlass") is None:
        raise ImportError("This kernel needs CuTe's Python DSL: pip install 'nvidia-cutlass-dsl[cu13]==4.8.1'")


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
