"""A version that gives up the structure of its parent is told apart from one that only changes it."""

import pytest

from engine.evaluator import languages
from tests.engine.evaluator.checks.screening.candidates import SWISH, forward
from tests.engine.evaluator.toolchains.kernels import TILED_LOOP, swish

PLAIN = (
    SWISH.replace("  auto X = make_tensor(x.data_ptr<float>(), make_layout((int)x.numel()));\n", "  float* X = 0;\n")
    .replace("  auto Y = make_tensor(y.data_ptr<float>(), make_layout((int)x.numel()));\n", "  float* Y = 0;\n")
    .replace("using namespace cute;\n", "")
)
CUDA = 'S = """__global__ void k(float* x) { x[0] = 1; }"""\next = load_inline(name="a", cuda_sources=S)\n'


@pytest.mark.parametrize(
    ("parent", "child", "said"),
    [
        (SWISH, PLAIN, "strips the CuTe structure"),
        (SWISH, PLAIN.replace("return y;", "// make_tensor make_layout make_tensor\n  return y;"), "strips the CuTe"),
        (swish(loop=TILED_LOOP * 4), SWISH, "loses most of the CuTe structure"),
        (SWISH, "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    pass\n", "drops the custom kernel"),
        (SWISH, "# load_inline\nclass ModelNew: pass\n", "drops the custom kernel"),
        (CUDA, CUDA.replace("__global__", "static"), "drops the CUDA kernels"),
    ],
)
def test_a_loss_is_named(parent: str, child: str, said: str) -> None:
    assert said in languages.find("cute").lost(parent, child)


@pytest.mark.parametrize(
    ("parent", "child"),
    [
        (SWISH, SWISH),
        (SWISH, swish(loop=TILED_LOOP)),
        (swish(loop=TILED_LOOP), SWISH),
        (PLAIN, PLAIN.replace("float", "double")),
        (PLAIN, SWISH),
        (SWISH, forward("return ext.swish(x.contiguous())")),
        (SWISH, SWISH.replace("class ModelNew(", "class ModelNew((")),
        (CUDA, CUDA.replace("x[0] = 1", "x[0] = 2")),
    ],
)
def test_a_change_is_no_loss(parent: str, child: str) -> None:
    assert languages.find("cute").lost(parent, child) == ""
