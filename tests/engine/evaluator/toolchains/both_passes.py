"""Three small tasks with a backward pass, an activation, a normalisation and a linear layer, and kernels for them.

All kernels of a device stand in one text, so that one build serves every candidate.
"""

from __future__ import annotations

from pathlib import Path

from engine.evaluator import tasks
from engine.evaluator.tasks import Task
from storage.results.policy import Policy

HEAD = "import torch\nimport torch.nn as nn\n"
TASKS = {
    "silu": """
class Model(nn.Module):
    def forward(self, x):
        return torch.nn.functional.silu(x)

rows, width = 32, 160

def get_inputs():
    return [torch.randn(rows, width)]

def get_init_inputs():
    return []
""",
    "layer_norm": """
class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        nn.init.normal_(self.norm.weight)
        nn.init.normal_(self.norm.bias)

    def forward(self, x):
        return self.norm(x)

rows, width = 48, 96

def get_inputs():
    return [torch.randn(rows, width)]

def get_init_inputs():
    return [width]
""",
    "linear": """
class Model(nn.Module):
    def __init__(self, width, features):
        super().__init__()
        self.fc = nn.Linear(width, features)

    def forward(self, x):
        return self.fc(x)

rows, width, features = 24, 40, 32

def get_inputs():
    return [torch.randn(rows, width)]

def get_init_inputs():
    return [width, features]
""",
}

# Of each pair of functions the second one is the backward pass. `at` runs a lambda for each index.
FUNCTIONS = r"""
torch::Tensor silu(torch::Tensor x) {
  auto y = torch::empty_like(x);
  auto px = x.data_ptr<float>(); auto py = y.data_ptr<float>();
  AT(x.numel(), { float s = 1.f / (1.f + expf(-px[i])); py[i] = px[i] * s; });
  return y;
}

torch::Tensor silu_backward(torch::Tensor g, torch::Tensor x, double factor) {
  auto dx = torch::empty_like(x);
  auto px = x.data_ptr<float>(); auto pg = g.data_ptr<float>(); auto pd = dx.data_ptr<float>();
  float f = factor;
  AT(x.numel(), { float s = 1.f / (1.f + expf(-px[i])); pd[i] = f * pg[i] * s * (1.f + px[i] * (1.f - s)); });
  return dx;
}

torch::Tensor layer_norm(torch::Tensor x, torch::Tensor w, torch::Tensor b) {
  auto y = torch::empty_like(x);
  int n = x.size(1);
  auto px = x.data_ptr<float>(); auto pw = w.data_ptr<float>();
  auto pb = b.data_ptr<float>(); auto py = y.data_ptr<float>();
  AT(x.size(0), {
    float mean = 0, var = 0;
    for (int k = 0; k < n; ++k) mean += px[i * n + k];
    mean /= n;
    for (int k = 0; k < n; ++k) var += (px[i * n + k] - mean) * (px[i * n + k] - mean);
    float r = 1.f / sqrtf(var / n + 1e-5f);
    for (int k = 0; k < n; ++k) py[i * n + k] = (px[i * n + k] - mean) * r * pw[k] + pb[k];
  });
  return y;
}

std::vector<torch::Tensor> layer_norm_backward(torch::Tensor g, torch::Tensor x, torch::Tensor w, double factor) {
  auto dx = torch::empty_like(x); auto dw = torch::empty_like(w); auto db = torch::empty_like(w);
  auto scale = torch::empty({x.size(0), 2}, x.options());
  int m = x.size(0), n = x.size(1);
  float f = factor;
  auto px = x.data_ptr<float>(); auto pw = w.data_ptr<float>(); auto pg = g.data_ptr<float>();
  auto pdx = dx.data_ptr<float>(); auto pdw = dw.data_ptr<float>(); auto pdb = db.data_ptr<float>();
  auto ps = scale.data_ptr<float>();
  AT(m, {
    float mean = 0, var = 0, a = 0, c = 0;
    for (int k = 0; k < n; ++k) mean += px[i * n + k];
    mean /= n;
    for (int k = 0; k < n; ++k) var += (px[i * n + k] - mean) * (px[i * n + k] - mean);
    float r = 1.f / sqrtf(var / n + 1e-5f);
    ps[2 * i] = mean; ps[2 * i + 1] = r;
    for (int k = 0; k < n; ++k) {
      float h = (px[i * n + k] - mean) * r, t = pg[i * n + k] * pw[k];
      a += t; c += t * h;
    }
    for (int k = 0; k < n; ++k) {
      float h = (px[i * n + k] - mean) * r, t = pg[i * n + k] * pw[k];
      pdx[i * n + k] = r * (t - a / n - h * c / n);
    }
  });
  AT(n, {
    float sw = 0, sb = 0;
    for (int k = 0; k < m; ++k) {
      float t = pg[k * n + i];
      sw += t * (px[k * n + i] - ps[2 * k]) * ps[2 * k + 1]; sb += t;
    }
    pdw[i] = f * sw; pdb[i] = sb;
  });
  return {dx, dw, db};
}

torch::Tensor linear(torch::Tensor x, torch::Tensor w, torch::Tensor b) {
  int n = x.size(1), o = w.size(0);
  auto y = torch::empty({x.size(0), o}, x.options());
  auto px = x.data_ptr<float>(); auto pw = w.data_ptr<float>();
  auto pb = b.data_ptr<float>(); auto py = y.data_ptr<float>();
  AT(y.numel(), {
    int r = i / o, c = i % o;
    float s = pb[c];
    for (int k = 0; k < n; ++k) s += px[r * n + k] * pw[c * n + k];
    py[i] = s;
  });
  return y;
}

std::vector<torch::Tensor> linear_backward(torch::Tensor g, torch::Tensor x, torch::Tensor w, double factor) {
  int m = x.size(0), n = x.size(1), o = w.size(0);
  auto dx = torch::empty_like(x); auto dw = torch::empty_like(w); auto db = torch::empty({o}, x.options());
  float f = factor;
  auto px = x.data_ptr<float>(); auto pw = w.data_ptr<float>(); auto pg = g.data_ptr<float>();
  auto pdx = dx.data_ptr<float>(); auto pdw = dw.data_ptr<float>(); auto pdb = db.data_ptr<float>();
  AT(m * n, {
    int r = i / n, c = i % n;
    float s = 0;
    for (int k = 0; k < o; ++k) s += pg[r * o + k] * pw[k * n + c];
    pdx[i] = s;
  });
  AT(o * n, {
    int r = i / n, c = i % n;
    float s = 0;
    for (int k = 0; k < m; ++k) s += pg[k * o + r] * px[k * n + c];
    pdw[i] = f * s;
  });
  AT(o, {
    float s = 0;
    for (int k = 0; k < m; ++k) s += pg[k * o + i];
    pdb[i] = s;
  });
  return {dx, dw, db};
}
"""
INCLUDES = "#include <torch/extension.h>\n#include <cmath>\n#include <vector>\n"
AT_ON_HOST = "#define AT(count, ...) for (int i = 0; i < (int)(count); ++i) __VA_ARGS__\n"
AT_ON_DEVICE = """
template <class F> __global__ void each(int count, F f) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) f(i);
}
#define AT(count, ...) each<<<((int)(count) + 127) / 128, 128>>>((int)(count), [=] __device__ (int i) __VA_ARGS__)
"""
HOST, DEVICE = INCLUDES + AT_ON_HOST + FUNCTIONS, INCLUDES + AT_ON_DEVICE + FUNCTIONS
NAMES = ["silu", "silu_backward", "layer_norm", "layer_norm_backward", "linear", "linear_backward"]
BACKWARD_OF_LAYER = "torch::Tensor g, torch::Tensor x, torch::Tensor w, double factor"
DECLARED = f"""
#include <torch/extension.h>
#include <vector>
torch::Tensor silu(torch::Tensor x);
torch::Tensor silu_backward(torch::Tensor g, torch::Tensor x, double factor);
torch::Tensor layer_norm(torch::Tensor x, torch::Tensor w, torch::Tensor b);
std::vector<torch::Tensor> layer_norm_backward({BACKWARD_OF_LAYER});
torch::Tensor linear(torch::Tensor x, torch::Tensor w, torch::Tensor b);
std::vector<torch::Tensor> linear_backward({BACKWARD_OF_LAYER});
"""
BUILT = {
    "cpu": f'ext = load_inline(name="both", cpp_sources=r"""{HOST}""", functions={NAMES})\n',
    "cuda": f'ext = load_inline(name="both", cpp_sources=r"""{DECLARED}""", cuda_sources=r"""{DEVICE}""", '
    f'functions={NAMES}, extra_cuda_cflags=["--extended-lambda"])\n',
}
LOADING = "from torch.utils.cpp_extension import load_inline\n"
SILU = """
class Silu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return ext.silu(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return ext.silu_backward(g.contiguous(), x, 1.0)

class ModelNew(nn.Module):
    def forward(self, x):
        return Silu.apply(x)
"""
WITH_WEIGHTS = """
class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, b):
        ctx.save_for_backward(x, w)
        return ext.KERNEL(x, w, b)

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return tuple(ext.KERNEL_backward(g.contiguous(), x, w, 1.0))

class ModelNew(nn.Module):
    def __init__(self, *sizes):
        super().__init__()
        self.LAYER

    def forward(self, x):
        return Own.apply(x, self.NAME.weight, self.NAME.bias)
"""


def task(name: str, folder: Path, policy: Policy | None = None) -> Task:
    """One of the three, forward and backward."""
    path = folder / f"{name}.py"
    path.write_text(HEAD + TASKS[name])
    found = tasks.read(path).task("cpu")
    return Task(found.name, found.source, found.sizes, policy=policy or Policy(backward=True))


def kernel(name: str, device: str) -> str:
    """The candidate for it."""
    layers = {"layer_norm": ("norm", "norm = nn.LayerNorm(*sizes)"), "linear": ("fc", "fc = nn.Linear(*sizes)")}
    body = SILU
    if name in layers:
        attribute, layer = layers[name]
        body = WITH_WEIGHTS.replace("KERNEL", name).replace("LAYER", layer).replace("NAME", attribute)
    return f"{HEAD}{LOADING}\n{BUILT[device]}{body}"


def wrong(source: str) -> str:
    """The candidate with a gradient that is off by a hundredth."""
    return source.replace("x, 1.0)", "x, 1.01)").replace("w, 1.0)", "w, 1.01)")


def without_backward(source: str) -> str:
    """The candidate with a forward that autograd knows nothing of."""
    return source.replace("return Silu.apply(x)", "return ext.silu(x)")


def by_autograd(source: str) -> str:
    """The candidate with a gradient that PyTorch computes from the reference's own formula."""
    return source.replace(
        "return ext.silu_backward(g.contiguous(), x, 1.0)",
        "with torch.enable_grad():\n"
        "            own = x.detach().requires_grad_()\n"
        "            return torch.autograd.grad(torch.nn.functional.silu(own), own, g)[0]",
    )
