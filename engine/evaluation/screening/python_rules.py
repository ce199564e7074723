"""Judges what a candidate's Python does, use by use. Knows the reading, not the text."""

from __future__ import annotations

import re
from collections.abc import Iterator

from engine.evaluation.screening import operators
from engine.evaluation.screening import python_names as names
from engine.evaluation.screening.finding import Finding, Rule
from engine.evaluation.screening.uses import Act, Reading, Use
from storage.policy import Policy

KERNEL_ONLY = "do it in the C++ kernel"


def judge(reading: Reading, policy: Policy) -> Iterator[Finding]:
    """Findings use by use."""
    threads = [u for u in reading.uses if u.name == "threading.Thread" and u.act is Act.CALLED]
    is_joined = any(u.name.endswith(".join") for u in reading.uses)
    for use in reading.uses:
        for examine in (_machinery, _outside, _processes, _streams, _dynamic, _storing):
            yield from examine(use)
        yield from _imports(use, policy)
        yield from _library(use, policy)
        yield from _precision(use, policy)
        yield from _cache(use)
    if threads and not is_joined:
        yield Finding(Rule.PROCESSES, threads[0].line, "starts a thread that nobody joins; join it", False)


def _refuse(rule: Rule, use: Use, message: str) -> Finding:
    return Finding(rule, use.line or None, message, True)


def _flag(rule: Rule, use: Use, message: str) -> Finding:
    return Finding(rule, use.line or None, message, False)


def _library(use: Use, policy: Policy) -> Iterator[Finding]:
    if use.act in (Act.CALLED, Act.LOADED) and names.COMPILERS.fullmatch(use.name):
        yield _refuse(
            Rule.LIBRARY, use, f"`{use.name}` hands the work to PyTorch's compiler or internals; {KERNEL_ONLY}"
        )
        return
    if not use.is_forward or operators.is_allowed(use.name, policy.library_operators):
        return
    if use.act is Act.COMPUTED:
        if operators.is_allowed({"MatMult": "matmul"}.get(use.name, use.name), policy.library_operators):
            return
        what = f"arithmetic on tensors (`{use.name}`) in the forward path"
    elif use.act in (Act.CALLED, Act.LOADED) and operators.is_computing(use.name):
        what = f"`{use.name}` in the forward path"
    else:
        return
    if use.is_result or (use.act is Act.LOADED and not use.name.startswith("torch.Tensor.")):
        yield _refuse(
            Rule.LIBRARY, use, f"{what} is a library fall-back: PyTorch computes instead of the kernel; {KERNEL_ONLY}"
        )
    elif use.name not in operators.ARITHMETIC:
        yield _flag(Rule.LIBRARY, use, f"{what} works on weights or fresh tensors in every call")


def copies(reading: Reading, task_operators: frozenset[str]) -> Iterator[Finding]:
    """Data movement in the forward path: refused where it is the task itself."""
    for use in reading.uses:
        if use.is_forward and use.act is Act.CALLED and use.is_result and operators.is_copying(use.name):
            leaf = operators.leaf(use.name)
            if leaf in task_operators:
                yield _refuse(Rule.LIBRARY, use, f"`{use.name}` is the task itself; {KERNEL_ONLY}")
            else:
                yield _flag(Rule.LIBRARY, use, f"`{use.name}` moves data in every call")


def _precision(use: Use, policy: Policy) -> Iterator[Finding]:
    if use.act in (Act.CALLED, Act.STORED) and names.PRECISION.fullmatch(use.name):
        yield _refuse(Rule.PRECISION, use, f"`{use.name}` switches the arithmetic of PyTorch; leave its settings alone")
    if policy.precision not in ("fp32", "tf32") or use.act is not Act.CALLED:
        return
    if use.name in ("torch.Tensor.half", "torch.Tensor.bfloat16"):
        yield _flag(Rule.PRECISION, use, f"`.{operators.leaf(use.name)}()` rounds below {policy.precision}")
    narrow = [word for word in re.findall(r"torch\.\w+", use.detail) if names.NARROW.fullmatch(word)]
    if narrow and use.name.startswith("torch."):
        yield _flag(Rule.PRECISION, use, f"`{use.name}` with {narrow[0]} rounds below {policy.precision}")


def _imports(use: Use, policy: Policy) -> Iterator[Finding]:
    is_call = use.act is Act.CALLED and use.name in ("importlib.import_module", "builtins.__import__")
    if is_call and use.argument is None:
        yield _refuse(Rule.DYNAMIC, use, "imports a module by a computed name; write the import out")
    if use.act is not Act.IMPORTED and not (is_call and use.argument):
        return
    full = use.argument if is_call and use.argument else use.name
    module = (use.detail or full) if not is_call else full
    root = module.partition(".")[0]
    if any(_within(full, allowed) for allowed in policy.imports):
        return
    for rule, refused in names.REFUSED_IMPORTS:
        if root in refused:
            yield _refuse(rule, use, f"imports `{module}`, which no kernel needs; remove it")
            return
    if root not in names.IMPORTS:
        listed = ", ".join(sorted(names.IMPORTS - names.FLAGGED_IMPORTS - {"__future__"}))
        yield _refuse(Rule.IMPORTS, use, f"imports `{module or full}`; a candidate may import {listed}")
    elif root in names.FLAGGED_IMPORTS - names.QUIET_FLAGS:
        yield _flag(Rule.IMPORTS, use, f"imports `{root}`, which a kernel seldom needs")


def _within(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def _machinery(use: Use) -> Iterator[Finding]:
    last = operators.leaf(use.name)
    if use.act in (Act.LOADED, Act.CALLED, Act.IMPORTED):
        if names.MACHINERY_FLAGS.fullmatch(use.name):
            if use.act is Act.CALLED:
                yield _flag(Rule.MACHINERY, use, f"`{use.name}` is unusual in a candidate")
        elif names.MACHINERY.fullmatch(use.name):
            yield _refuse(Rule.MACHINERY, use, f"`{use.name}` reaches into the machinery around the kernel; remove it")
        elif last in names.FLAGGED_ATTRIBUTES:
            yield _flag(Rule.MACHINERY, use, f"`.{last}` is unusual in a candidate")
        elif last in names.ATTRIBUTES:
            yield _refuse(Rule.MACHINERY, use, f"`.{last}` reaches into Python's internals; remove it")
        elif use.name.startswith("sys.") and not names.SYS_FREE.fullmatch(use.name):
            yield _refuse(Rule.MACHINERY, use, f"`{use.name}` reaches into the interpreter; remove it")
        elif use.name.startswith("sys.path.") and use.act is Act.CALLED:
            yield _refuse(Rule.MACHINERY, use, "changes where modules are imported from; remove it")


def _storing(use: Use) -> Iterator[Finding]:
    if use.act is not Act.STORED:
        return
    if use.name.startswith("hook."):
        yield _flag(Rule.MACHINERY, use, f"`{use.name.removeprefix('hook.')}` runs code around the model's call")
    elif use.name.startswith("?."):
        if use.name in ("?.daemon",):
            yield _refuse(Rule.PROCESSES, use, "makes a thread a daemon; join your threads instead")
    elif use.name in ("os.environ", "sys.modules") or use.name.startswith(("os.environ.", "sys.modules.")):
        if use.name.startswith("sys.modules"):
            yield _refuse(Rule.MACHINERY, use, "replaces imported modules; remove it")
        elif not names.BUILD_VARIABLES.fullmatch(use.argument or ""):
            yield _refuse(
                Rule.OUTSIDE, use, f"sets the environment variable {use.argument!r}; only build variables may be set"
            )
    elif names.PRECISION.fullmatch(use.name) or use.name.startswith("torch.nn.Module."):
        return
    elif use.name.startswith("threading.Thread.") and use.name.endswith("daemon"):
        yield _refuse(Rule.PROCESSES, use, "makes a thread a daemon; join your threads instead")
    elif use.detail != "item" or "." in use.name:
        yield _refuse(Rule.MACHINERY, use, f"assigns to `{use.name}`, which is not the candidate's own; remove it")


def _outside(use: Use) -> Iterator[Finding]:
    if use.act not in (Act.CALLED, Act.LOADED):
        return
    last = operators.leaf(use.name)
    if use.name in ("os.environ.setdefault", "os.environ.pop", "os.environ.update", "os.putenv"):
        if use.act is Act.CALLED and not names.BUILD_VARIABLES.fullmatch(use.argument or ""):
            yield _refuse(
                Rule.OUTSIDE, use, f"sets the environment variable {use.argument!r}; only build variables may be set"
            )
    elif use.name.startswith("os.") and not names.OS_FREE.fullmatch(use.name):
        if not names.OS_PROCESSES.fullmatch(use.name):
            yield _refuse(Rule.OUTSIDE, use, f"`{use.name}` reaches files or the system; remove it")
    elif names.OUTSIDE.fullmatch(use.name):
        yield _refuse(Rule.OUTSIDE, use, f"`{use.name}` reaches files or the network; remove it")
    elif use.name == "builtins.open":
        yield from _opening(use)
    elif use.name.startswith("?.") and last in names.FILE_METHODS:
        yield _refuse(Rule.OUTSIDE, use, f"`.{last}` changes files; a candidate is one file and needs no other")


def _opening(use: Use) -> Iterator[Finding]:
    yield _refuse(Rule.OUTSIDE, use, "opens a file; a candidate is one file and needs no other")


def _processes(use: Use) -> Iterator[Finding]:
    if use.act not in (Act.CALLED, Act.LOADED):
        return
    if names.OS_PROCESSES.fullmatch(use.name) or names.PROCESSES.fullmatch(use.name):
        yield _refuse(Rule.PROCESSES, use, f"`{use.name}` starts or ends processes; remove it")
    elif use.name == "threading.Thread" and re.search(r"\bdaemon=(?!0\b|False)", use.detail):
        yield _refuse(Rule.PROCESSES, use, "starts a daemon thread; join your threads instead")
    elif use.name == "?.setDaemon":
        yield _refuse(Rule.PROCESSES, use, "makes a thread a daemon; join your threads instead")


def _streams(use: Use) -> Iterator[Finding]:
    if use.act in (Act.CALLED, Act.LOADED) and names.STREAMS.fullmatch(use.name):
        yield _refuse(Rule.STREAMS, use, f"`{use.name}` leaves the current stream; launch on the current stream only")


def _dynamic(use: Use) -> Iterator[Finding]:
    if use.act is Act.DYNAMIC:
        yield _refuse(Rule.DYNAMIC, use, f"{use.name}: what runs cannot be read; write it out")
    elif use.act in (Act.CALLED, Act.LOADED) and names.DYNAMIC.fullmatch(use.name):
        yield _refuse(Rule.DYNAMIC, use, f"`{use.name}` runs code that cannot be read here; write it out")
    elif use.act is Act.UNCLEAR and use.name:
        yield _flag(Rule.DYNAMIC, use, use.name)
    elif use.act is Act.CALLED and use.name == "builtins.type":
        yield _refuse(Rule.DYNAMIC, use, "makes a class with type(); write a class statement")


def _cache(use: Use) -> Iterator[Finding]:
    if use.act is Act.KEPT and use.is_forward:
        yield _flag(Rule.CACHE, use, f"keeps a tensor of one call in `{use.name}`; every call must compute anew")
    elif use.act is Act.CALLED and use.is_forward and use.name in ("functools.lru_cache", "functools.cache"):
        yield _flag(Rule.CACHE, use, f"`{use.name}` remembers results in the forward path")
