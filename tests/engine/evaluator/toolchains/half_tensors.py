"""Two small tasks and kernels for them that read and write bfloat16 or float16 and keep sums in float32."""

from __future__ import annotations

from tests.engine.evaluator.toolchains.both_passes import AT_ON_DEVICE, AT_ON_HOST, HEAD, INCLUDES, LOADING, TASKS

DEEP_LINEAR = TASKS["linear"].replace("24, 40, 32", "8, 1024, 16")
FUNCTIONS = r"""
template <class T> void silu_of(torch::Tensor x, torch::Tensor y) {
  auto px = x.data_ptr<T>(); auto py = y.data_ptr<T>();
  AT(x.numel(), { float v = px[i]; py[i] = T(v / (1.f + expf(-v))); });
}

// With `rounds` the sum itself is rounded after each term, as a narrow accumulator does.
template <class T> void linear_of(torch::Tensor x, torch::Tensor w, torch::Tensor b, torch::Tensor y, bool rounds) {
  int n = x.size(1), o = w.size(0);
  auto px = x.data_ptr<T>(); auto pw = w.data_ptr<T>(); auto pb = b.data_ptr<T>(); auto py = y.data_ptr<T>();
  AT(y.numel(), {
    int r = i / o, c = i % o;
    float s = pb[c];
    for (int k = 0; k < n; ++k) {
      s += float(px[r * n + k]) * float(pw[c * n + k]);
      if (rounds) s = float(T(s));
    }
    py[i] = T(s);
  });
}

torch::Tensor silu(torch::Tensor x) {
  auto y = torch::empty_like(x);
  if (x.scalar_type() == torch::kBFloat16) silu_of<at::BFloat16>(x, y); else silu_of<at::Half>(x, y);
  return y;
}

torch::Tensor linear(torch::Tensor x, torch::Tensor w, torch::Tensor b, bool rounds) {
  auto y = torch::empty({x.size(0), w.size(0)}, x.options());
  if (x.scalar_type() == torch::kBFloat16) linear_of<at::BFloat16>(x, w, b, y, rounds);
  else linear_of<at::Half>(x, w, b, y, rounds);
  return y;
}
"""
DECLARED = """
#include <torch/extension.h>
torch::Tensor silu(torch::Tensor x);
torch::Tensor linear(torch::Tensor x, torch::Tensor w, torch::Tensor b, bool rounds);
"""
NAMES = ["silu", "linear"]
BUILT = {
    "cpu": f'ext = load_inline(name="narrow", cpp_sources=r"""{INCLUDES}{AT_ON_HOST}{FUNCTIONS}""", '
    f"functions={NAMES})\n",
    "cuda": f'ext = load_inline(name="narrow", cpp_sources=r"""{DECLARED}""", '
    f'cuda_sources=r"""{INCLUDES}{AT_ON_DEVICE}{FUNCTIONS}""", functions={NAMES}, '
    f'extra_cuda_cflags=["--extended-lambda"])\n',
}
MODELS = {
    "silu": """
class ModelNew(nn.Module):
    def forward(self, x):
        return ext.silu(x)
""",
    "linear": """
class ModelNew(nn.Module):
    def __init__(self, *sizes):
        super().__init__()
        self.fc = nn.Linear(*sizes)

    def forward(self, x):
        return ext.linear(x, self.fc.weight, self.fc.bias, False)
""",
}
SOURCES = {"silu": HEAD + TASKS["silu"], "linear": HEAD + DEEP_LINEAR}


def kernel(name: str, device: str) -> str:
    """The candidate for a task."""
    return f"{HEAD}{LOADING}\n{BUILT[device]}{MODELS[name]}"


def rounding(source: str) -> str:
    """The linear layer with its sums in the dtype of its tensors."""
    return source.replace("self.fc.bias, False)", "self.fc.bias, True)")
