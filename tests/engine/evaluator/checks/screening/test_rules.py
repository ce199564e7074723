# ruff: noqa: E501 - one case a line
"""Each rule on a text: ways around it that are refused, and look-alikes that are not."""

import pytest

from engine.evaluator.checks.screening import Rule, screen
from storage.results.policy import Policy
from tests.engine.evaluator.checks.screening.candidates import (
    CALL,
    SWISH,
    flagged,
    forward,
    found,
    refused,
    with_cpp,
    with_init,
    with_top,
    with_top_and_forward,
)

REFUSED: dict[Rule, dict[str, str]] = {
    Rule.LIBRARY: {
        "compiled": with_top("f = torch.compile(torch.relu)"),
        "script by getattr": with_top("f = getattr(torch.jit, 'script')(torch.relu)"),
        "from import": with_top("from torch._inductor import compile_fx"),
        "memory as an array": with_top("class A:", "    __array_interface__ = {}"),
        "memory as an array, later": with_top("class A:", "    pass", "setattr(A, '__array_interface__', {})"),
        "cpp header": with_cpp(top="#include <Eigen/Dense>"),
    },
    Rule.STREAMS: {
        "python stream": forward("with torch.cuda.stream(torch.cuda.Stream()):", "    return ext.swish(x)"),
        "alias": with_top_and_forward("S = getattr(torch.cuda, 'Str' + 'eam')", "s = S()", CALL),
        "graph": with_init("self.g = torch.cuda.CUDAGraph()"),
        "graph module": with_top_and_forward("from torch.cuda import graph as g", "with g(None):", "    return ext.swish(x)"),
        "cpp stream": with_cpp("  cudaStream_t s; cudaStreamCreate(&s);\n"),
        "cpp per thread": with_cpp("  k(cudaStreamPerThread);\n"),
    },
    Rule.PROCESSES: {
        "cpp fork": with_cpp("  if (fork() == 0) {}\n"),
        "cpp system": with_cpp('  ::system("ls");\n'),
        "subprocess": with_top("import subprocess"),
        "from import": with_top("from multiprocessing import Process as P"),
        "fork": with_top("import os\nos.fork()"),
        "fork by getattr": with_top("import os\ngetattr(os, 'fo' + 'rk')()"),
        "system": with_top("import os as o\nrun = o.system\nrun('ls')"),
        "daemon thread": with_top("import threading\nthreading.Thread(target=print, daemon=True).start()"),
        "daemon attribute": with_top("import threading\nt = threading.Thread(target=print)\nt.daemon = True"),
        "process pool": with_top("from concurrent.futures import ProcessPoolExecutor\nProcessPoolExecutor()"),
    },
    Rule.MACHINERY: {
        "patched torch": with_top("torch.allclose = lambda *a, **k: True"),
        "patched time": with_top("import time\ntime.perf_counter = lambda: 0.0"),
        "patched by setattr": with_top("setattr(torch, 'all' + 'close', print)"),
        "patched by dictionary": with_top("torch.__dict__['allclose'] = print"),
        "patched tensor": with_top("torch.Tensor.__eq__ = lambda a, b: True"),
        "patched by alias": with_top("c = torch.cuda\nc.synchronize = print"),
        "patched builder": with_top("import torch.utils.cpp_extension as e\ne.load = print"),
        "modules": with_top("import sys\nsys.modules['torch'] = None"),
        "modules read": with_top("import sys\nm = sys.modules['engine']"),
        "frames": with_top("import sys\nf = sys._getframe(1)"),
        "trace": with_top("from sys import settrace as s\ns(None)"),
        "gc": with_top("import gc"),
        "exec of builtins": with_top("import builtins\ngetattr(builtins, 'ex' + 'ec')('1')"),
        "cpp assembly by macro": with_cpp(top='#define S asm volatile("syscall")'),
        "ctypes": with_top("import ctypes as c"),
        "own engine": with_top("from engine.evaluator.processes import model_caller"),
        "subclasses": with_top("k = ().__class__.__bases__[0].__subclasses__()"),
        "globals of a function": with_top("g = torch.relu.__globals__"),
        "globals of a lambda": with_top("g = (lambda: 0).__globals__"),
        "seed": with_top("torch.manual_seed(0)"),
        "seed as a default": with_top("def get_inputs(x=torch.manual_seed(0)):", "    pass"),
        "seed in a function that is called by text": with_top("def get_inputs():", "    torch.manual_seed(0)", "f('get_inputs')"),
        "seed under a guard that is matched": with_top("match 1:", "    case __name__:", "        pass", "if __name__ == '__main__':", "    torch.manual_seed(0)"),
        "threads": with_top("n = torch.set_num_threads\nn(8)"),
        "flags": with_top("torch.backends.cudnn.benchmark = True"),
        "behind the tensor class": forward("return super(torch.Tensor, x).numpy()"),
        "tensor class": with_top("class T(torch.Tensor):\n    pass"),
        "torch function": with_top("class T:\n    def __torch_function__(self, *a):\n        return 0"),
        "module through a module": with_top("import warnings\nwarnings.sys.exit()"),
        "cpp dlsym": with_cpp('  auto f = dlsym(0, "x");\n'),
        "cpp own clock": with_cpp(top='extern "C" int clock_gettime(int, struct timespec* t) { return 0; }'),
        "cpp own synchronize": with_cpp(top="cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }"),
        "cpp assembly": with_cpp('  asm volatile("syscall" ::: "memory");\n'),
        "cpp assembly in pieces": with_cpp('  __asm__("sys" "call");\n'),
        "cpp assembly bytes": with_cpp('  asm(".byte 0x0f, 0x05");\n'),
    },
    Rule.PRECISION: {
        "tf32": with_top("torch.backends.cuda.matmul.allow_tf32 = True"),
        "tf32 by setattr": with_top("setattr(torch.backends.cuda.matmul, 'allow_' + 'tf32', True)"),
        "matmul precision": with_top("p = torch.set_float32_matmul_precision\np('medium')"),
        "autocast": forward("with torch.autocast('cuda'):", "    return ext.swish(x)"),
        "amp": forward("with torch.cuda.amp.autocast():", "    return ext.swish(x)"),
    },
    Rule.OUTSIDE: {
        "open": with_top("open('/tmp/x', 'w')"),
        "open by alias": with_top("f = open\nf('x')"),
        "pathlib": with_top("import pathlib\npathlib.Path('x').write_text('y')"),
        "environment": with_top("import os\nos.environ['LD_PRELOAD'] = 'x'"),
        "environment by update": with_top("import os\nos.environ.update(LD_PRELOAD='x')"),
        "socket": with_top("import socket"),
        "urllib": with_top("from urllib import request"),
        "tempfile": with_top("import tempfile as t"),
        "torch.load": with_top("torch.load('x')"),
        "remove": with_top("import os\nos.remove('x')"),
        "cpp include of a file": with_cpp(top='#include "/etc/passwd"'),
    },
    Rule.DYNAMIC: {
        "exec": with_top("exec('import torch')"),
        "task's function by globals": with_top("def get_inputs():", "    pass", "globals()['get_' + 'inputs']()"),
        "eval by alias": with_top("e = eval\ne('1')"),
        "compile": with_top("compile('1', 'x', 'eval')"),
        "builtins": with_top("f = getattr(__builtins__, 'open')"),
        "getattr under another name": with_top("g = getattr\ng(torch, 'compile')"),
        "method by a computed name": with_top("import operator\nf = operator.methodcaller('num' + str('py'))"),
        "computed import": with_top("__import__(input())"),
        "importlib": with_top("import importlib"),
        "base64": with_top("import base64"),
        "pickle": with_top("import pickle as p"),
        "computed attribute": with_top("names = dir()\nf = getattr(torch, names[0])"),
        "class by type": with_top("T = type('T', (nn.Module,), {})"),
        "cpp include by macro": with_cpp(top="#define H <mkl.h>\n#include H"),
    },
    Rule.IMPORTS: {
        "triton": with_top("import triton"),
        "from import": with_top("from scipy.linalg import blas"),
        "inside a function": forward("import cupy as c", CALL),
        "by call": with_top("c = __import__('cu' + 'py')"),
        "relative": with_top("from . import other"),
        "under a guard with more": with_top("if __name__ == '__main__' or True:", "    import cupy"),
        "under a guard on a name of its own": with_top("__name__ = '__main__'", "if __name__ == '__main__':", "    import cupy"),
        "in an else": with_top("if __name__ == '__main__':", "    pass", "else:", "    import cupy"),
        "in a task's function that it calls": with_top("def get_inputs():", "    import cupy", "x = get_inputs()"),
    },
}  # fmt: skip

HONEST: dict[Rule, dict[str, str]] = {
    Rule.LIBRARY: {
        "guarded fall-back": forward("if not x.is_cuda or x.dtype != torch.float32:", "    return torch.min(x, dim=1)[0]", CALL),
        "optional bias": forward("y = ext.swish(x)", "if self.bias is not None:", "    y = y + self.bias", "return y"),
        "one element": forward("return ext.swish(x) / x.shape[0]"),
        "padding": forward("return ext.swish(torch.nn.functional.pad(x, (0, 4)).contiguous())[:, :-4]"),
        "an argument named input": SWISH.replace("self, x)", "self, input)").replace("ext.swish(x)", "ext.swish(input)"),
        "unused copy of the reference": with_top("class Model(nn.Module):", "    def forward(self, x):", "        return x * torch.sigmoid(x)"),
        "cpp fall-back": with_cpp("  if (!x.is_contiguous()) return at::sigmoid(x) * x;\n"),
    },
    Rule.STREAMS: {
        "current stream": forward("s = torch.cuda.current_stream()", CALL),
        "cpp current stream": with_cpp("  auto s = at::cuda::getCurrentCUDAStream(); cudaStream_t c = c10::cuda::getCurrentCUDAStream().stream();\n"),
        "cpp comment": with_cpp("  // cudaStreamCreate(&s) is not needed\n"),
    },
    Rule.PROCESSES: {
        "joined threads": with_top("import threading\nt = threading.Thread(target=print)\nt.start()\nt.join()"),
        "thread pool": with_top("from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(2) as p:\n    p.submit(print)"),
        "cpp pool": with_cpp("  std::vector<std::thread> pool; for (auto& t : pool) t.join();\n"),
        "cpp members": with_cpp("  auto z = x.detach(); auto c = x.clone(); q.system(); q.fork();\n"),
        "cpp own function": with_cpp("  fork(3);\n", "static int fork(int n) { return n; }"),
        "cpu count": with_top("import os\nn = os.cpu_count()"),
    },
    Rule.MACHINERY: {
        "seed in what a guard calls": with_top("def main():", "    torch.manual_seed(0)", "if '__main__' == __name__:", "    main()"),
        "seed where it is not imported": with_top("if __name__ != '__main__':", "    pass", "else:", "    torch.manual_seed(0)"),
        "attributes of one's own": with_init("self.time = 3", "self.allclose = 4"),
        "versions": with_top("import sys\nok = sys.version_info >= (3, 8) and torch.__version__ and torch.cuda.is_available()"),
        "own attributes": with_init("self.__dict__['a'] = 1"),
        "setattr on self": with_init("setattr(self, 'a', 1)"),
        "cpp assembly": with_cpp('  asm volatile("cp.async.wait_all;\\n" ::: "memory"); asm("ld.global.f32 %0, [%1];" : "=f"(a) : "l"(p));\n'),
        "cpp timing helper": with_cpp("  elapsed();\n", "static inline double elapsed() { return std::chrono::steady_clock::now().time_since_epoch().count(); }"),
        "cpp member names": with_cpp("  timer.clock(); q.time(); auto read = [&](int i) { return i; }; read(3);\n"),
        "warnings": with_top("import warnings\nwarnings.filterwarnings('ignore')"),
    },
    Rule.PRECISION: {
        "float stays": forward("return ext.swish(x.float())"),
        "dtype check": forward("assert x.dtype not in (torch.float16, torch.bfloat16)", CALL),
        "cpp dispatch": with_cpp('  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "k", [&] {});\n'),
        "cpp variable": with_cpp("  int half = size(X) / 2; for (int i = 0; i < half; ++i) {}\n"),
    },
    Rule.OUTSIDE: {
        "build variables": with_top("import os\nos.environ['TORCH_CUDA_ARCH_LIST'] = '9.0'\nos.environ.setdefault('MAX_JOBS', '4')"),
        "path of cutlass": with_top("import os\np = os.path.join(os.environ.get('CUTLASS_PATH', '/usr'), 'include')"),
        "path object": with_top("from pathlib import Path\np = str(Path('/usr') / 'include')"),
        "cpp names": with_cpp('  bool open = true; auto s = std::remove(b, e, 0); printf("open(%d)", 1);\n'),
        "cpp members": with_cpp("  q.write(1); q.open(); auto r = q->read();\n"),
    },
    Rule.DYNAMIC: {
        "getattr with a constant": forward("f = getattr(ext, 'sw' + 'ish')", "return f(x)"),
        "source from parts": SWISH.replace("cpp_sources=SOURCE", "cpp_sources=[SOURCE, 'int later();']"),
        "source with a number": SWISH.replace("cpp_sources=SOURCE", "cpp_sources=SOURCE.replace('777', str(3))"),
        "source by percent": SWISH.replace("cpp_sources=SOURCE", "cpp_sources=SOURCE + 'int a%d = %d;' % (1, len(SOURCE))"),
        "source by format": SWISH.replace("cpp_sources=SOURCE", "cpp_sources=SOURCE + 'int a = {n};'.format(n=4)"),
        "source by a function": SWISH.replace("ext = ", "def make(n):\n    return SOURCE + f'int a = {n};'\n\n\next = ").replace("cpp_sources=SOURCE", "cpp_sources=make(4)"),
        "source by a later function": SWISH.replace("ext = load_inline(", "def build():\n    return load_inline(cpp_sources=text(), ").replace("cpp_sources=SOURCE, ", "") + "\n\ndef text():\n    return SOURCE\n\n\next = build()\n",
        "source by join": SWISH.replace("cpp_sources=SOURCE", "cpp_sources=''.join([SOURCE, *('int b%d;' % i for i in range(3))])"),
        "eval mode": with_init("self.eval()"),
        "re.compile": with_top("import re\np = re.compile('a')"),
    },
    Rule.IMPORTS: {
        "usual ones": with_top("import math, os, functools, itertools\nfrom typing import Optional\nfrom dataclasses import dataclass"),
        "time is only flagged": with_top("import time"),
        "numpy is only flagged": with_top("import numpy as np"),
        "under a guard": with_top("if __name__ == '__main__':", "    import cupy"),
        "in a task's function": with_top("def get_inputs():", "    import cupy"),
        "parts of torch": with_top("import torch.nn.functional as F\nfrom torch.nn import init\nfrom torch.nn.modules.utils import _pair"),
    },
}  # fmt: skip


def cases(table: dict[Rule, dict[str, str]]) -> list[object]:
    return [
        pytest.param(rule, source, id=f"{rule.name.lower()}: {name}")
        for rule, sources in table.items()
        for name, source in sources.items()
    ]


@pytest.mark.parametrize(("rule", "source"), cases(REFUSED))
def test_a_breach_is_refused_by_its_rule(rule: Rule, source: str) -> None:
    compile(source, "candidate", "exec")
    assert rule in refused(source), found(source)


@pytest.mark.parametrize(("rule", "source"), cases(HONEST))
def test_an_honest_look_alike_is_not_refused(rule: Rule, source: str) -> None:
    compile(source, "candidate", "exec")
    assert refused(source) == set(), found(source)


@pytest.mark.parametrize(
    "source",
    [
        forward("return ext.swish(x.half().float())"),
        forward("return ext.swish(x.to(torch.bfloat16).float())"),
        forward("h = getattr(x, 'ha' + 'lf')", "return ext.swish(h())"),
        forward("y = torch.empty_like(x, dtype=torch.float16)", CALL),
        with_cpp("  cutlass::half_t h(1.f);\n"),
        with_cpp("  auto z = x.to(at::kBFloat16);\n"),
    ],
)
def test_rounding_below_the_tasks_precision_is_flagged(source: str) -> None:
    assert Rule.PRECISION in flagged(source)
    assert Rule.PRECISION not in flagged(source, Policy(dtype="fp16"))


def test_the_language_must_be_used_where_the_file_runs() -> None:
    hidden = "class ModelNew: pass\nif __name__ == '__main__':\n    " + CALL.replace("return", "x =")
    for text in (
        SWISH,
        "if __name__ == '__main__':\n    SOURCE = 'auto X = make_tensor(p, make_layout(4));'\n" + hidden,
    ):
        rules = {finding.rule for finding in screen(text, Policy(), "cute")}
        assert (Rule.LANGUAGE in rules) is (text is not SWISH)


def test_a_task_may_allow_further_imports() -> None:
    assert refused(with_top("import triton.language as tl"), Policy(imports=("triton",))) == set()
    assert Rule.IMPORTS in refused(with_top("import tritonous"), Policy(imports=("triton",)))


def test_a_triton_kernel_may_start_before_the_one_before_has_ended_but_not_read_the_clock() -> None:
    def uses(name: str) -> set[Rule]:
        text = f"import triton.language as tl\n@triton.jit\ndef kernel():\n    tl.extra.cuda.{name}()"
        return refused(with_top(text), Policy(imports=("triton",)))

    assert uses("gdc_wait") == uses("gdc_launch_dependents") == set()
    assert uses("globaltimer") == {Rule.MACHINERY}
