"""Further ways to reach a library operator from forward through Python itself; all are refused."""

import pytest

from engine.evaluation.screening import Rule
from tests.engine.evaluation.screening.candidates import (
    CALL,
    SWISH,
    forward,
    found,
    refused,
    with_cpp,
    with_init,
    with_top_and_forward,
)

WAYS = {
    "import star": with_top_and_forward("from torch import *", "return sigmoid(ext.swish(x))"),
    "class var": SWISH.replace("    def forward", "    op = staticmethod(torch.relu)\n\n    def forward").replace(
        CALL, "return self.op(ext.swish(x))"
    ),
    "forward classvar": SWISH.replace(
        "class ModelNew(nn.Module):\n", "class ModelNew(nn.Module):\n    f2 = torch.relu\n"
    ).replace(CALL, "return ModelNew.f2(ext.swish(x))"),
    "partialmethod": with_top_and_forward(
        "import functools\nf = functools.partial(torch.mul, other=2)", "return f(ext.swish(x))"
    ),
    "contextmgr": forward(
        "class A:",
        "    def __enter__(s): return torch.relu",
        "    def __exit__(s,*a): pass",
        "with A() as f:",
        "    return f(ext.swish(x))",
    ),
    "getitem cls": forward("class A:", "    def __getitem__(s, k): return torch.relu(k)", "return A()[ext.swish(x)]"),
    "matmul dunder cls": forward(
        "class A:", "    def __add__(s, k): return torch.relu(k)", "return A() + ext.swish(x)"
    ),
    "star unpack": forward("a, *b = [1, torch.relu]", "return b[0](ext.swish(x))"),
    "dict unpack": forward("d = {**{'f': torch.relu}}", "return d['f'](ext.swish(x))"),
    "dataclass": with_top_and_forward(
        "from dataclasses import dataclass, field\n@dataclass\nclass D:\n    f: object = torch.relu",
        "return D().f(ext.swish(x))",
    ),
    "enum": with_top_and_forward(
        "import enum\nclass E(enum.Enum):\n    A = enum.member(torch.relu)", "return E.A.value(ext.swish(x))"
    ),
    "match": forward("match torch.relu:", "    case f:", "        return f(ext.swish(x))"),
    "sorted key": forward("return sorted([ext.swish(x)], key=torch.relu)[0]"),
    "exception": forward(
        "try:", "    raise ValueError(torch.relu)", "except ValueError as e:", "    return e.args[0](ext.swish(x))"
    ),
    "nn via import module": with_top_and_forward(
        "import torch.nn.functional", "return torch.nn.functional.relu(ext.swish(x))"
    ),
    "modules F": forward("return torch.nn.modules.activation.F.relu(ext.swish(x))"),
    "F through nn.modules import": with_top_and_forward(
        "from torch.nn.modules.conv import F", "return F.relu(ext.swish(x))"
    ),
    "functional import from nn": with_top_and_forward(
        "from torch.nn import functional as G", "return G.relu(ext.swish(x))"
    ),
    "torch.functional": forward("return torch.functional.einsum('i->i', ext.swish(x))"),
    "__call__ of model": SWISH.replace(
        "    def forward", "    def __call__(self, x):\n        return torch.relu(x)\n\n    def forward"
    ),
    "closure reduce": with_top_and_forward(
        "import itertools", "return list(itertools.starmap(torch.mul, [(x, ext.swish(x))]))[0]"
    ),
    "accumulate": with_top_and_forward("import itertools", "return list(itertools.accumulate([x, ext.swish(x)]))[-1]"),
    "autograd": forward("return torch.autograd.functional.jvp(torch.relu, x, x)[0]"),
    "cuda": forward("return torch.cuda.comm.reduce_add([ext.swish(x)])"),
    "checkpoint": forward("import torch.utils.checkpoint as c", "return c.checkpoint(torch.relu, ext.swish(x))"),
    "utils": forward("return torch.nn.utils.parametrizations.weight_norm(x)"),
    "softmax layer in list": with_init("self.l = nn.ModuleList([nn.SiLU()])").replace(
        CALL, "for m in self.l: x = m(x)\n        return ext.swish(x)"
    ),
    "children": with_init("self.l = nn.SiLU()").replace(
        CALL, "for m in self.children(): x = m(x)\n        return ext.swish(x)"
    ),
    "modules dict": with_init("self.l = nn.SiLU()").replace(CALL, "return self._modules['l'](ext.swish(x))"),
    "get_submodule": with_init("self.l = nn.SiLU()").replace(CALL, "return self.get_submodule('l')(ext.swish(x))"),
    "nonlocal": forward("def f():", "    def g(v): return v.exp()", "    return g", "return f()(ext.swish(x))"),
    "int param annotated": SWISH.replace("forward(self, x)", "forward(self, x: float)").replace(
        CALL, "return ext.swish(x) * x"
    ),
    "tensor via vararg": SWISH.replace("forward(self, x)", "forward(self, *a)").replace(
        CALL, "x, = a\n        ext.swish(x)\n        return x * 2"
    ),
    "kwargs": SWISH.replace("forward(self, x)", "forward(self, x, **k)").replace(
        CALL, "return ext.swish(x).__class__.exp(x)"
    ),
    "linalg": forward("return torch.linalg.norm(ext.swish(x))"),
    "exec const": forward("exec('y = torch.relu(x)')", "return ext.swish(x)"),
    "helper class method": with_top_and_forward(
        "class H:\n    def go(self, v): return v.exp()\nh = H()", "return h.go(ext.swish(x))"
    ),
    "staticmethod": with_top_and_forward(
        "class H:\n    @staticmethod\n    def go(v): return v.exp()", "return H.go(ext.swish(x))"
    ),
    "classmethod": with_top_and_forward(
        "class H:\n    @classmethod\n    def go(cls, v): return v.exp()", "return H.go(ext.swish(x))"
    ),
}


@pytest.mark.parametrize("source", WAYS.values(), ids=WAYS)
def test_an_operator_is_found_however_python_reaches_it(source: str) -> None:
    compile(source, "candidate", "exec")
    assert refused(source), found(source)


@pytest.mark.parametrize(
    "source",
    [
        with_top_and_forward("from math import *", "return ext.swish(x)"),
        with_top_and_forward("class H:\n    @classmethod\n    def go(cls, v): return ext.swish(v)", "return H.go(x)"),
        with_init("self.l = nn.ModuleList([nn.Linear(4, 4)])").replace(CALL, "return ext.swish(x, self.l[0].weight)"),
        forward(
            "class A:",
            "    def __enter__(s): return ext",
            "    def __exit__(s, *a): pass",
            "with A() as e:",
            "    return e.swish(x)",
        ),
        with_top_and_forward("class S:\n    def __getitem__(s, k): return k + 1", "return ext.swish(x, S()[3])"),
    ],
)
def test_the_same_ways_to_a_kernel_are_free(source: str) -> None:
    assert refused(source) == set(), found(source)


def test_a_method_looked_up_by_name_in_cpp_is_refused() -> None:
    assert Rule.DYNAMIC in refused(with_cpp('auto s = py::cast(x).attr("sig" "moid")();'))


def test_an_attribute_that_a_module_sets_is_let_through() -> None:
    source = with_cpp(top='PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.attr("version") = 1; }')
    assert Rule.DYNAMIC not in refused(source)
