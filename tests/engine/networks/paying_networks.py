"""A network whose modules each have a kernel of another kind: one pays, one is wrong, one is slow, one is never
reached, one ends its process. Kernels are written in PyTorch: what they cost is real, and nothing has to be built."""

import os
import threading

import torch
from torch import nn
from torch.utils import _pytree as pytree

WIDTH, ROWS, CHAINS = 256, 512, 8


class Chain(nn.Module):
    """Forty operators that give what they are given."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(20):
            x = x * 2.0
            x = x * 0.5
        return x


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(WIDTH) + 0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x * self.weight) + 1.0


class Shifted(nn.Module):
    def forward(self, x: torch.Tensor, *, by: float) -> dict[str, torch.Tensor]:
        return {"moved": torch.sin(x) + torch.cos(x) + by, "x": x}


class Pair(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, None]:
        return torch.relu(x) * 3.0 + 1.0, None


class Wrapped:
    """No table can say how this is put together."""

    def __init__(self, x: torch.Tensor) -> None:
        self.x = x


pytree.register_pytree_node(
    Wrapped, lambda one: ([one.x], None), lambda parts, _: Wrapped(*parts),
    flatten_with_keys_fn=lambda one: ([(pytree.GetAttrKey("x"), one.x)], None),
)  # fmt: skip


class Odd(nn.Module):
    def forward(self, wrapped: Wrapped) -> torch.Tensor:
        return torch.exp(-torch.abs(wrapped.x)) * 2.0


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project, self.again = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.blocks = nn.ModuleList([Chain() for _ in range(CHAINS)])
        self.scaled, self.shifted, self.pair, self.odd = Scaled(), Shifted(), Pair(), Odd()

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        x = self.project(x)
        for block in self.blocks:
            x = block(x)
        x = self.again(x)
        if os.environ.get("TILEWRIGHT_TEST_OTHER_STRIDES"):
            x = x.t().contiguous().t()
        x = self.shifted(self.scaled(x), by=0.5)["moved"]
        x, _ = self.pair(x)
        return {"logits": x + self.odd(Wrapped(x))}


class Kinds(nn.Module):
    """It calls one module in two ways, and cannot be copied."""

    def __init__(self) -> None:
        super().__init__()
        self.project, self.chain = nn.Linear(WIDTH, WIDTH), Chain()
        self.lock = threading.Lock()

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        x = self.project(x)
        return {"all": self.chain(x), "half": self.chain(x[: ROWS // 2])}


class Images(nn.Module):
    """Dense convolutions, in channels last as it is made below: weights lie so too."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, 16, 4, stride=4), nn.LayerNorm(16)
        self.halve, self.head = nn.Conv2d(16, 32, 2, stride=2), nn.Linear(32, 4)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = self.norm(self.stem(images).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        out: torch.Tensor = self.head(self.halve(x).mean((2, 3)))
        return out


def make_images() -> tuple[nn.Module, list[tuple[str, float, tuple[torch.Tensor, ...], dict[str, object]]]]:
    network, images = Images(), torch.randn(4, 3, 32, 32)
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return network, [("images", 1.0, (images.contiguous(memory_format=torch.channels_last),), {})]


HALVE = '''
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

source = """
#include <torch/extension.h>

// All tensors are channels last: pixels of 16 inputs and 32 outputs, and for each output 2 x 2 pixels of 16 weights.
torch::Tensor halve(torch::Tensor x, torch::Tensor weight, torch::Tensor bias) {
  auto out = torch::empty({4, 4, 4, 32}, x.options());
  const float *from = x.data_ptr<float>(), *w = weight.data_ptr<float>(), *b = bias.data_ptr<float>();
  float* to = out.data_ptr<float>();
  for (int image = 0; image < 4; ++image)
    for (int row = 0; row < 4; ++row)
      for (int column = 0; column < 4; ++column)
        for (int o = 0; o < 32; ++o) {
          float sum = b[o];
          for (int part = 0; part < 4; ++part)
            for (int c = 0; c < 16; ++c)
              sum += from[((image * 8 + 2 * row + part / 2) * 8 + 2 * column + part % 2) * 16 + c]
                     * w[(o * 4 + part) * 16 + c];
          to[((image * 4 + row) * 4 + column) * 32 + o] = sum;
        }
  return out.permute({0, 3, 1, 2});
}
"""

extension = load_inline(name="halve", cpp_sources=source, functions=["halve"])


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(32, 16, 2, 2)), nn.Parameter(torch.randn(32))

    def forward(self, x):
        return extension.halve(x, self.weight, self.bias)
'''


def make_kinds() -> tuple[nn.Module, list[tuple[str, float, tuple[torch.Tensor, ...], dict[str, object]]]]:
    return Kinds(), [("rows", 1.0, (torch.randn(ROWS, WIDTH),), {})]


def make() -> tuple[nn.Module, list[tuple[str, float, tuple[torch.Tensor, ...], dict[str, object]]]]:
    return Network(), [("rows", 1.0, (torch.randn(ROWS, WIDTH),), {})]


KERNELS = {
    "chain": "        return x.clone()",
    "scaled": "        return torch.tanh(x * self.weight) + 1.0",
    "scaled_wrong": "        return torch.tanh(x * self.weight) + 1.001",
    "shifted": "        return torch.sin(x) + torch.cos(x) + 0.5",
    "shifted_slow": "        import time\n        time.sleep(0.02)\n        return torch.sin(x) + torch.cos(x) + 0.5",
    "pair": "        return torch.relu(x) * 3.0 + 1.0",
    "pair_ends": "        import os\n        os.abort()",
}


def kernel(name: str) -> str:
    """The file of one kernel."""
    weight = f"        self.weight = nn.Parameter(torch.rand({WIDTH}))\n" if name.startswith("scaled") else ""
    return (
        "import torch\nfrom torch import nn\n\n\nclass ModelNew(nn.Module):\n    def __init__(self):\n"
        f"        super().__init__()\n{weight}\n    def forward(self, x):\n{KERNELS[name]}\n"
    )
