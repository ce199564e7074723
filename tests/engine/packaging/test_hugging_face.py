"""A package in the layout of Hugging Face's kernel builder, loaded by their own library from a local folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from engine.packaging.folders import KERNELS
from engine.packaging.packing import Asked, packaged
from tests.engine.packaging.judged import IN_PYTORCH, judged_run

PROGRAM = """
import sys
from pathlib import Path
import torch
from torch import nn
from kernels import LocalLayerRepository, Mode, get_loaded_kernels, get_local_kernel, kernelize
from kernels import replace_kernel_forward_from_hub, use_kernel_mapping

class Swish(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(x)

replace_kernel_forward_from_hub(Swish, "Swish")
network = nn.Sequential(nn.Linear(64, 64), Swish(), nn.Linear(64, 64), Swish())
x = torch.randn(4, 64)
with torch.no_grad():
    wanted = network(x)
    with use_kernel_mapping({"Swish": {"cpu": LocalLayerRepository(Path(sys.argv[1]), layer_name="Layer")}}):
        network = kernelize(network, mode=Mode.INFERENCE | Mode.TORCH_COMPILE, device="cpu")
    torch.testing.assert_close(network(x), wanted)
network(x).sum().backward()
assert network[0].weight.grad is not None
print(get_loaded_kernels()[0].module.report())
print(len(get_local_kernel(Path(sys.argv[1])).ENTRIES), "entry in the module that the card loads")
"""


@pytest.mark.judging
def test_their_library_puts_the_layer_into_a_network(home: Path, tmp_path: Path) -> None:
    run = judged_run(home, "swish", IN_PYTORCH, {"batch_size": 4, "dim": 64})
    for name, text in packaged([run], Asked(layout=KERNELS, licence="Apache-2.0")).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, str(tmp_path)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "2 kernel: kernel_1" in done.stdout
    assert "2 reference: gradients are wanted" in done.stdout
    assert "1 entry in the module that the card loads" in done.stdout
