# ruff: noqa: E501 - one case a line
"""Rule 1: PyTorch does not compute in the forward path, in whichever way it is reached; what arranges memory may."""

import pytest

from engine.evaluation.screening import Rule
from storage.policy import Policy
from tests.engine.evaluation.screening.candidates import (
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

PYTHON_EVASIONS = {
    "plain call": forward("return torch.sigmoid(ext.swish(x))"),
    "method": forward("return ext.swish(x).mul(x)"),
    "operator on tensors": forward("return ext.swish(x) * x"),
    "matrix operator": forward("return ext.swish(x @ x)"),
    "augmented assignment": forward("y = ext.swish(x)", "y += x", "return y"),
    "comparison": forward("return ext.swish(x * (x > 0))"),
    "functional": forward("import torch.nn.functional as F", "return F.relu(ext.swish(x))"),
    "alias": forward("m = torch.relu", "return m(ext.swish(x))"),
    "alias at the top": with_top_and_forward("op = torch.nn.functional.silu", "return op(ext.swish(x))"),
    "from import": with_top_and_forward("from torch import sigmoid as s", "return s(ext.swish(x))"),
    "star of names": with_top_and_forward(
        "import torch as t, torch.nn.functional as n", "return n.silu(t.relu(ext.swish(x)))"
    ),
    "getattr": forward("return getattr(torch, 'rel' + 'u')(ext.swish(x))"),
    "getattr with join": forward("return getattr(x, ''.join(['m', 'u', 'l']))(ext.swish(x))"),
    "getattr with f-string": forward("n = 'relu'", "return getattr(torch, f'{n}')(ext.swish(x))"),
    "getattr with format": forward("return getattr(torch, '{}{}'.format('re', 'lu'))(ext.swish(x))"),
    "getattr with replace": forward("return getattr(torch, 'rXlu'.replace('X', 'e'))(ext.swish(x))"),
    "getattr in a loop": forward("y = ext.swish(x)", "for n in ('relu',): y = getattr(torch, n)(y)", "return y"),
    "operator module": with_top_and_forward("import operator", "return operator.mul(ext.swish(x), x)"),
    "methodcaller": with_top_and_forward("import operator", "return operator.methodcaller('relu')(ext.swish(x))"),
    "attrgetter": with_top_and_forward(
        "import operator", "return operator.attrgetter('nn.functional.relu')(torch)(ext.swish(x))"
    ),
    "partial": with_top_and_forward("import functools", "return functools.partial(torch.add, ext.swish(x))(x)"),
    "reduce": with_top_and_forward(
        "import functools, operator", "return functools.reduce(operator.matmul, [x, ext.swish(x)])"
    ),
    "map": forward("return list(map(torch.relu, [ext.swish(x)]))[0]"),
    "unbound method": forward("return torch.Tensor.relu(ext.swish(x))"),
    "class of the tensor": forward("return type(x).relu(ext.swish(x))"),
    "dunder class": forward("return x.__class__.relu(ext.swish(x))"),
    "dictionary of the class": forward("return torch.Tensor.__dict__['relu'](ext.swish(x))"),
    "vars": forward("return vars(torch)['re' + 'lu'](ext.swish(x))"),
    "dunder method": forward("return ext.swish(x).__mul__(x)"),
    "table of functions": with_top_and_forward("OPS = {'a': torch.relu}", "return OPS['a'](ext.swish(x))"),
    "helper function": with_top_and_forward("def helper(v):\n    return torch.relu(v)", "return helper(ext.swish(x))"),
    "nested helper": forward("def inner(v): return v.exp()", "return inner(ext.swish(x))"),
    "lambda": forward("return (lambda v: v + v)(ext.swish(x))"),
    "method of the model": forward("return self.post(ext.swish(x))")
    + "\n    def post(self, v):\n        return v.tanh()\n",
    "comprehension": forward("return [v.exp() for v in [ext.swish(x)]][0]"),
    "walrus": forward("return (y := ext.swish(x)).exp()"),
    "layer made in the constructor": with_init("self.act = nn.SiLU()").replace(CALL, "return self.act(ext.swish(x))"),
    "layer in a sequence": with_init("self.net = nn.Sequential(nn.ReLU(), nn.SiLU())").replace(
        CALL, "return self.net(ext.swish(x))"
    ),
    "layer made in forward": forward("return nn.ReLU()(ext.swish(x))"),
    "forward of a layer": with_init("self.act = nn.SiLU()").replace(CALL, "return self.act.forward(ext.swish(x))"),
    "subclass of a layer": with_top("class Mine(nn.SiLU):\n    pass").replace(CALL, "return Mine()(ext.swish(x))"),
    "super().forward": SWISH.replace("(nn.Module)", "(nn.SiLU)").replace(CALL, "return super().forward(ext.swish(x))"),
    "functions kept on self": with_init("self.op = torch.relu").replace(CALL, "return self.op(ext.swish(x))"),
    "setattr on self": with_init("setattr(self, 'o' + 'p', torch.relu)").replace(CALL, "return self.op(ext.swish(x))"),
    "forward replaced": with_init("self.forward = torch.relu"),
    "forward replaced from outside": SWISH + "\n\nModelNew.forward = lambda self, x: torch.relu(ext.swish(x))\n",
    "fall-back": forward("try:", "    return ext.swish(x)", "except Exception:", "    return x * torch.sigmoid(x)"),
    "fall-back by size": forward("if x.numel() > 7: return torch.sigmoid(x)", "return ext.swish(x)"),
    "torch.compile": SWISH + "\n\nModelNew = torch.compile(ModelNew)\n",
    "jit decorator": with_top_and_forward("@torch.jit.script\ndef f(v):\n    return v", "return f(ext.swish(x))"),
    "aten": forward("return torch.ops.aten.relu(ext.swish(x))"),
    "aten by alias": with_top_and_forward("A = torch.ops", "return getattr(A, 'at' + 'en').relu(ext.swish(x))"),
    "_C": forward("return torch._C._nn.silu(ext.swish(x))"),
    "own autograd function": with_top_and_forward(
        "class Fn(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, v):\n        return v.sigmoid()",
        "return Fn.apply(ext.swish(x))",
    ),
    "in place on a buffer": forward("y = torch.empty_like(x)", "y.copy_(ext.swish(x))", "return y.exp_()"),
    "buffer written by the kernel": forward("y = torch.empty_like(x)", "ext.swish(x, y)", "return y + 1"),
    "forward hook": with_init("self.register_forward_hook(lambda m, i, o: torch.relu(o))"),
    "property": SWISH.replace(CALL, "return self.op(ext.swish(x))")
    + "\n    @property\n    def op(self):\n        return torch.relu\n",
    "numpy": with_top_and_forward("import numpy as np", "return torch.from_numpy(np.exp(ext.swish(x).numpy()))"),
    "globals": with_top_and_forward("op = torch.relu", "return globals()['op'](ext.swish(x))"),
    "default argument": SWISH.replace("forward(self, x)", "forward(self, x, op=torch.relu)").replace(
        CALL, "return op(ext.swish(x))"
    ),
    "decorator of one's own": with_top(
        "def after(f):\n    def g(self, x):\n        return torch.relu(f(self, x))\n    return g"
    ).replace("    def forward", "    @after\n    def forward"),
}

CPP_EVASIONS = {
    "function": with_cpp("  y = at::sigmoid(x);\n"),
    "torch function": with_cpp("  y = torch::mul(x, torch::sigmoid(x));\n"),
    "method": with_cpp("  y = x.sigmoid();\n"),
    "method in place": with_cpp("  y.mul_(x);\n"),
    "method in a chain": with_cpp("  y = x.contiguous().view(-1).sigmoid();\n"),
    "arithmetic": with_cpp("  y = x * y;\n"),
    "arithmetic with numbers": with_cpp("  y = 2 * x;\n"),
    "compound arithmetic": with_cpp("  y *= x;\n"),
    "namespace alias": with_cpp("  y = t::sigmoid(x);\n", "namespace t = at;"),
    "using declaration": with_cpp("  y = sigmoid(x);\n", "using at::sigmoid;"),
    "using namespace": with_cpp("  y = sigmoid(x);\n", "using namespace at;"),
    "argument-dependent lookup": with_cpp("  y = sigmoid(x);\n"),
    "pasted macro": with_cpp("  y = at::MM(sig,moid)(x);\n", "#define MM(a,b) a##b"),
    "nested pasting": with_cpp(
        "  y = at::CAT(SIG,moid)(x);\n", "#define PASTE(a,b) a##b\n#define CAT(a,b) PASTE(a,b)\n#define SIG sig"
    ),
    "macro for the method": with_cpp("  y = x.OP();\n", "#define OP sigmoid"),
    "macro redefined in a branch": with_cpp(
        "  y = x.OP();\n", "#define OP sigmoid\n#if 0\n#define OP contiguous\n#endif"
    ),
    "digraph macro": with_cpp("  y = x.OP();\n", "%:define OP sigmoid"),
    "line continuation": with_cpp("  y = at::sig\\\nmoid(x);\n"),
    "comment between": with_cpp("  y = at/**/::/* ok */sigmoid(x);\n"),
    "comment that ends early": with_cpp('  const char* s = "/*"; y = at::sigmoid(x); const char* e = "*/";\n'),
    "raw string trick": with_cpp('  const char* s = R"x(" /* )x"; y = at::sigmoid(x); const char* e = "*/";\n'),
    "function pointer": with_cpp("  auto f = &at::sigmoid; y = f(x);\n"),
    "operator table": with_cpp("  y = at::_ops::sigmoid::call(x);\n"),
    "dispatcher": with_cpp('  auto op = c10::Dispatcher::singleton().findSchemaOrThrow("aten::sigmoid", "");\n'),
    "name in pieces": with_cpp('  auto op = find("at" "en::sigmoid");\n'),
    "stable interface": with_cpp('  StableIValue s[1]; torch_call_dispatcher("x", "", s, 0);\n'),
    "shim operator": with_cpp("  aoti_torch_cpu_addmm_out(a, b, c, d, 1, 1);\n"),
    "functional": with_cpp("  y = torch::nn::functional::silu(x);\n"),
    "own declaration of sgemm": with_cpp("  sgemm_();\n", 'extern "C" void sgemm_();'),
    "cblas": with_cpp("  cblas_sgemm();\n", 'extern "C" int cblas_sgemm();'),
    "cublas": with_cpp("  cublasSgemm(h);\n"),
    "cublas header": with_cpp(top="#include <cublas_v2.h>"),
    "mkl header by has_include": with_cpp(top="#if __has_include(<mkl.h>)\n#  include <mkl.h>\n#endif"),
    "operator of the device's namespace": with_cpp("  y = at::cuda::mm(x, y);\n"),
    "method after one's own function of a device's name": with_cpp(
        "  y = at::cuda::getTile(x).relu();\n", "namespace at::cuda { Tensor getTile(Tensor x) { return x; } }"
    ),
    "auto variable": with_cpp("  auto z = x.contiguous(); y = z.sigmoid();\n"),
    "fresh tensor": with_cpp("  y = torch::empty_like(x).sigmoid_();\n"),
}


@pytest.mark.parametrize("source", PYTHON_EVASIONS.values(), ids=PYTHON_EVASIONS)
def test_python_that_lets_the_library_compute_is_refused(source: str) -> None:
    compile(source, "candidate", "exec")
    assert refused(source) & {Rule.LIBRARY, Rule.DECOY}, found(source)


@pytest.mark.parametrize("source", CPP_EVASIONS.values(), ids=CPP_EVASIONS)
def test_cpp_that_lets_the_library_compute_is_refused(source: str) -> None:
    compile(source, "candidate", "exec")
    assert Rule.LIBRARY in refused(source), found(source)


HONEST = {
    "layout": forward(
        "x = x.contiguous().view(-1).reshape(4, -1).t().contiguous()", "return ext.swish(x).permute(1, 0)"
    ),
    "allocation": forward(
        "y = torch.empty_like(x)",
        "z = torch.zeros(x.shape[0] * 2, device=x.device)",
        "ext.swish(x)",
        "return ext.swish(x)",
    ),
    "sizes": forward(
        "b, n = x.shape", "rows = (b + 15) // 16 * x.stride(0)", "assert x.dim() == 2 and n % 8 == 0", CALL
    ),
    "checks": forward("if x.dtype != torch.float32 or not x.is_contiguous(): raise ValueError('float32')", CALL),
    "dtype that stays": forward("return ext.swish(x.to(torch.float32).float().cuda())"),
    "weights made in the constructor": with_init(
        "lin = nn.Linear(4, 4)", "self.w = nn.Parameter(lin.weight.data.clone() * 2)"
    ).replace(CALL, "return ext.swish(x, self.w)"),
    "layer that only holds weights": with_init("self.conv = nn.Conv2d(1, 1, 3)").replace(
        CALL, "return ext.swish(x, self.conv.weight, self.conv.padding[0] * 2 + 1)"
    ),
    "kernel kept on self": with_init("self.op = ext.swish", "self.scale = 2.0 ** 0.5").replace(
        CALL, "return self.op(x, self.scale * 2)"
    ),
    "kernel built late": with_top_and_forward(
        "_cached = None\n\n\ndef get():\n    global _cached\n    if _cached is None:\n        _cached = load_inline(name='n', cpp_sources=SOURCE, functions=['swish'])\n    return _cached",
        "return get().swish(x)",
    ),
    "autograd function around the kernel": with_top_and_forward(
        "class Fn(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, v):\n        return ext.swish(v)",
        "return Fn.apply(x)",
    ),
    "buffer filled through a view": forward("y = torch.empty_like(x)", "ext.swish(x, y.view(-1))", "return y"),
    "threads that fill a buffer": with_top_and_forward(
        "import threading",
        "y = torch.empty_like(x)",
        "threads = [threading.Thread(target=ext.swish, args=part) for part in [(x[:4], y[:4]), (x[4:], y[4:])]]",
        "for t in threads: t.start()",
        "for t in threads: t.join()",
        "return y",
    ),
    "executor": with_top_and_forward(
        "from concurrent.futures import ThreadPoolExecutor",
        "y = torch.empty_like(x)",
        "with ThreadPoolExecutor(2) as pool:",
        "    list(pool.map(ext.swish, x.chunk(4), y.chunk(4)))",
        "return y",
    ),
    "no_grad": forward("with torch.no_grad():", "    return ext.swish(x)"),
    "tests at the end of the file": SWISH
    + "\n\ndef check():\n    x = torch.rand(4)\n    return torch.allclose(ModelNew()(x), x * torch.sigmoid(x))\n",
    "operators in text": forward("'torch.sigmoid(x) would be slower'", "# torch.sigmoid(x)", CALL),
    "cute names": with_cpp(
        "  auto s = X(0) * 2; copy(X, Y); auto m = max(size(X), 1); gemm(X, Y, Y); axpby(1.f, X, 0.f, Y); exp(X(0));\n"
    ),
    "cpp layout and checks": with_cpp(
        "  auto z = x.contiguous().view({-1}); int n = x.numel() * 2 + x.size(0); TORCH_CHECK(x.dim() == 2 && n > 1);\n"
    ),
    "cpp own function of the same name": with_cpp(
        "  sigmoid(x.data_ptr<float>());\n",
        "static float sigmoid(float const* p) { return 1.f / (1.f + std::exp(-*p)); }",
    ),
    "cpp own function on tensors": with_cpp("  matmul(x, y);\n", "void matmul(torch::Tensor a, torch::Tensor b);"),
    "cpp comment and string": with_cpp(
        '  // at::matmul(x, y)\n  /* x.sigmoid() */ const char* s = "at::sigmoid(x)";\n'
    ),
    "cpp parallel_for": with_cpp("  at::parallel_for(0, 8, 1, [&](int64_t a, int64_t b) {});\n"),
    "cpp pointers": with_cpp("  float* p = y.data_ptr<float>() + x.size(0); p[0] = *p * 2;\n"),
    "cpp stream": with_cpp("  auto s = at::cuda::getCurrentCUDAStream(); auto d = c10::cuda::CUDAGuard(x.device());\n"),
    "cpp stream, taken apart": with_cpp(
        """  cudaStream_t stream = at::cuda::getCurrentCUDAStream().stream();
  auto of_device = at::cuda::getCurrentCUDAStream(x.get_device()).stream();
  const auto id = at::cuda::getCurrentCUDAStream(x.device().index()).unwrap().id();
  TORCH_CHECK(at::cuda::getCurrentCUDAStream().device_index() == at::cuda::current_device());
  auto s = torch::cuda::getCurrentCUDAStream().stream(); int wide = at::cuda::warp_size();
  int count = at::cuda::getCurrentDeviceProperties()->multiProcessorCount;
"""
    ),
    "cpp zeros and options": with_cpp(
        "  auto z = torch::zeros({4, 4}, x.options().dtype(torch::kFloat32)); auto e = at::empty({2}, x.options());\n"
    ),
}


@pytest.mark.parametrize("source", HONEST.values(), ids=HONEST)
def test_arranging_memory_and_calling_the_kernel_is_not_a_fall_back(source: str) -> None:
    compile(source, "candidate", "exec")
    assert refused(source) == set(), found(source)
    assert Rule.DECOY not in flagged(source), found(source)


def test_a_task_may_leave_an_operator_to_the_library() -> None:
    layer = with_init("self.conv2d = nn.Conv2d(1, 1, 3)").replace(CALL, "return ext.swish(self.conv2d(x))")
    function = forward("import torch.nn.functional as F", "return ext.swish(F.conv2d(x, x))")
    cpp = with_cpp("  y = at::conv2d(x, y);\n")
    for source in (layer, function, cpp):
        assert Rule.LIBRARY in refused(source)
        assert refused(source, Policy(library_operators=("conv2d",))) == set(), found(source)
    product = forward("return ext.swish(x @ x)")
    assert refused(product, Policy(library_operators=("matmul",))) == set()
    assert Rule.LIBRARY in refused(forward("return ext.swish(x @ x).relu()"), Policy(library_operators=("matmul",)))


def test_moving_data_is_flagged_and_refused_where_it_is_the_task() -> None:
    source = forward("return ext.swish(torch.cat([x, x]))")
    assert flagged(source) == {Rule.LIBRARY}
    reference = "class Model:\n    def forward(self, x):\n        return torch.cat([x, x])\n"
    assert any(f.is_refusal for f in found(source, reference=reference))


def test_arithmetic_on_weights_in_every_call_is_only_flagged() -> None:
    source = with_init("self.w = nn.Parameter(torch.ones(4))").replace(CALL, "return ext.swish(x, self.w * 2)")
    assert refused(source) == set()
    assert Rule.LIBRARY in flagged(source)


@pytest.mark.parametrize(
    "source",
    [
        forward("return x"),
        forward("y = x.contiguous()", "return y"),
        with_top_and_forward("ext.swish(torch.ones(4))", "return x.clone()"),
        SWISH.replace("def forward", "def other"),
    ],
)
def test_a_kernel_that_forward_does_not_reach_is_a_decoy(source: str) -> None:
    assert Rule.DECOY in refused(source)


@pytest.mark.parametrize("last", ["return x", "return x.clone()", "return torch.zeros_like(x)"])
def test_a_kernel_whose_result_is_dropped_is_flagged(last: str) -> None:
    assert Rule.DECOY in flagged(forward("ext.swish(x)", last))


def test_the_message_names_line_and_remedy() -> None:
    finding = next(f for f in found(forward("return torch.sigmoid(ext.swish(x))")) if f.is_refusal)
    assert finding.line == 26
    assert "torch.sigmoid" in finding.message
    assert "C++ kernel" in finding.message
    source = with_cpp("  y = x.sigmoid();\n")
    cpp = next(f for f in found(source) if f.is_refusal)
    assert cpp.line is not None
    assert source.splitlines()[cpp.line - 1] == "  y = x.sigmoid();"
