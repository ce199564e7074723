"""Small modules in the shapes of code that KernelBench files have: each a task and, as ModelNew, its own candidate."""

from __future__ import annotations

from collections.abc import Mapping

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n"

SEVERAL_INPUTS = """
class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x, mask, places):
        x = torch.cumsum(x * mask, dim=self.dim)
        return x, torch.argmax(x, dim=self.dim), torch.gather(x, self.dim, places)

batch_size, width = 8, 64

def get_inputs():
    mask = torch.randint(0, 2, (batch_size, width)).bool()
    return [torch.rand(batch_size, width), mask, torch.randint(0, width, (batch_size, 4))]

def get_init_inputs():
    return [1]
"""

SCALAR_LOSS = """
class Model(nn.Module):
    def __init__(self, margin=1.0):
        super().__init__()
        self.loss = nn.TripletMarginLoss(margin=margin)

    def forward(self, anchor, positive, negative):
        return self.loss(anchor, positive, negative)

input_shape = (128,)
batch_size = 16

def get_inputs():
    return [torch.rand(batch_size, *input_shape) for _ in range(3)]

def get_init_inputs():
    return [1.0]
"""

NORMS_IN_TRAINING = """
class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.BatchNorm2d(features)
        self.scale = nn.Parameter(torch.randn(features, 1, 1))
        self.register_buffer("shift", torch.ones(1))
        self.drop = nn.Dropout(0.25)

    def forward(self, x):
        x = F.relu(self.norm(x) * self.scale + self.shift, inplace=True)
        x += 1.0
        return self.drop(x)

batch_size = 4
height = width = 12
features = 8

def get_inputs():
    return [torch.randn(batch_size, features, height, width)]

def get_init_inputs():
    return [features]
"""

RECURRENT = """
class Model(nn.Module):
    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.cell = nn.Linear(input_size + hidden_size, hidden_size)
        self.gru = nn.GRU(hidden_size, hidden_size)

    def forward(self, x, state):
        for step in range(x.size(0)):
            state = torch.tanh(self.cell(torch.cat((x[step], state), dim=1)))
        out, last = self.gru(x.new_zeros(2, *state.shape) + state)
        return out, last

batch_size = 4
input_size = 16
hidden_size = 32

def get_inputs():
    return [torch.rand(3, batch_size, input_size), torch.zeros(batch_size, hidden_size)]

def get_init_inputs():
    return [input_size, hidden_size]
"""

ATTENTION = """
class Model(nn.Module):
    def forward(self, q, k, v):
        return torch.softmax(torch.matmul(q, k.transpose(-2, -1)) / 4.0, dim=-1) @ v

heads, length, width = 2, 32, 16

def get_inputs():
    return [torch.randn(heads, length, width) for _ in range(3)]

def get_init_inputs():
    return []
"""

CONVOLUTION = """
class Model(nn.Module):
    def __init__(self, channels, kernel_size):
        super().__init__()
        self.conv = nn.ConvTranspose2d(channels, channels, kernel_size, groups=2)

    def forward(self, x):
        return F.hardswish(self.conv(x))

batch_size, channels = 2, 8
kernel_size = (3, 5)

def get_inputs():
    return [torch.rand(batch_size, channels, 10, 12)]

def get_init_inputs():
    return [channels, kernel_size]
"""

SHAPES: Mapping[str, tuple[str, str]] = {
    "several_inputs": ("reduction", SEVERAL_INPUTS),
    "scalar_loss": ("loss", SCALAR_LOSS),
    "norms_in_training": ("reduction", NORMS_IN_TRAINING),
    "recurrent": ("matmul", RECURRENT),
    "attention": ("attention", ATTENTION),
    "convolution": ("convolution", CONVOLUTION),
}
"""Kernel class and module by name."""


def as_candidate(source: str) -> str:
    """A task's own module in the candidate's place."""
    return f"{source}\n\nclass ModelNew(Model):\n    pass\n"
