"""What the module of an exported kernel says of what it cannot do; beside that it is a module like any other."""

from __future__ import annotations

import copy
import io
from collections import namedtuple
from collections.abc import Callable
from typing import Any, cast

import pytest
import torch
from torch import nn

from engine.exporting.carried import _tilewright_guard, _tilewright_layout

Pair = namedtuple("Pair", "first second")


class Scale(nn.Module):
    """Multiplies by a weight as C++ does: it reads memory, and what it returns has no history."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.full((3,), 2.0))

    def forward(self, x: torch.Tensor, *, form: str = "") -> Any:
        """One tensor, or several in some form."""
        if x.shape[-1] != 3:
            raise RuntimeError("three columns are needed")
        y = torch.from_numpy(x.detach().numpy() * self.weight.detach().numpy())
        several = {"tuple": (y, y + 1), "list": [y, {"two": y + 1}], "named": Pair(y, y.argmax()), "none": None}
        return several[form] if form else y


def scale(dtype: str = "float32", *, has_backward: bool = False) -> Any:
    class ModelNew(Scale):
        pass

    _tilewright_guard(ModelNew, "cpu", dtype, "float32 tensors at n=3", has_backward)
    return ModelNew()


def test_a_gradient_through_a_kernel_without_backward_is_refused_in_the_backward_pass_alone() -> None:
    block, x = nn.Sequential(nn.Linear(3, 3), scale(), nn.ReLU(inplace=True)), torch.ones(2, 3)
    loss = block(x).sum() + x.sum()
    with pytest.raises(RuntimeError, match=r"no backward: .* make a run with --backward, or .* torch\.no_grad\(\)"):
        loss.backward()
    with torch.no_grad():
        assert block(x).grad_fn is None
    frozen = scale().requires_grad_(False)
    assert not frozen(x).requires_grad
    assert frozen(x.requires_grad_()).requires_grad


def test_a_module_holds_its_weights_as_its_kernel_was_judged_with_them_whatever_is_loaded() -> None:
    class ModelNew(nn.Conv2d):
        pass

    stride = (12, 1, 6, 3)
    _tilewright_layout(ModelNew, {"weight": ((8, 3, 2, 2), stride), "bias": ((9,), (2,))})
    model, loaded = ModelNew(3, 8, 2), nn.Conv2d(3, 8, 2)
    assert isinstance(model.weight, nn.Parameter)
    assert model.weight.stride() == stride
    model.load_state_dict(loaded.state_dict())
    assert model.bias is not None
    assert (model.weight.stride(), model.bias.stride()) == (stride, (1,))
    assert model.weight.equal(loaded.weight)
    assert ModelNew(3, 8, 4).weight.is_contiguous()


def test_outputs_keep_their_form_and_values_where_gradients_are_refused() -> None:
    model, x = scale(), torch.ones(2, 3)
    first, second = model(x, form="tuple")
    assert first.requires_grad
    assert second.equal(torch.full((2, 3), 3.0))
    one, named = model(x, form="list")
    assert one.grad_fn is not None
    assert named["two"].grad_fn is not None
    pair = model(x, form="named")
    assert (type(pair), pair.first.requires_grad, pair.second.requires_grad) == (Pair, True, False)
    assert model(x, form="none") is None


def test_an_answer_that_is_an_input_leaves_that_input_as_it_was() -> None:
    class Same(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x

    _tilewright_guard(Same, "cpu", "", "", False)
    x = torch.ones(3)
    assert Same()(x).requires_grad
    assert not x.requires_grad


def test_a_kernel_that_was_judged_with_its_backward_keeps_what_autograd_it_has() -> None:
    assert scale(has_backward=True)(torch.ones(2, 3)).grad_fn is None


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_a_tensor_of_another_dtype_is_refused_with_what_the_kernel_was_judged_with(dtype: torch.dtype) -> None:
    told = rf"judged with float32 tensors at n=3 and got {str(dtype)[6:]} of shape \(2, 3\): .*\.to\(torch\.float32\)"
    with pytest.raises(TypeError, match=told):
        scale()(torch.ones(2, 3, dtype=dtype))
    if dtype is not torch.bfloat16:  # which numpy has not
        assert scale("")(torch.ones(2, 3, dtype=dtype)).shape == (2, 3)


def test_a_failure_of_the_kernel_itself_is_told_with_what_it_was_judged_with() -> None:
    with pytest.raises(RuntimeError, match="three columns") as failure:
        scale()(torch.ones(2, 4))
    assert failure.value.__notes__ == ["This kernel was judged with float32 tensors at n=3; it got float32 (2, 4)."]


@pytest.mark.filterwarnings("ignore:`torch.jit.trace:DeprecationWarning")
def test_what_cannot_be_traced_says_that_a_package_can() -> None:
    model, x, jit = scale(), torch.ones(2, 3), cast(Any, torch.jit)
    ways = (
        lambda: copy.deepcopy(model).to("meta")(x.to("meta")),
        lambda: jit.trace(model, (x,)),
        lambda: torch.fx.symbolic_trace(model),
        lambda: torch.func.vmap(model)(x[None]),
        lambda: torch.export.export(model, (x,)),
    )
    for way in ways:
        with torch.no_grad(), pytest.raises(RuntimeError, match="python -m engine package"):
            way()


def test_a_compiler_that_is_to_have_one_graph_gives_that_sentence_as_its_reason() -> None:
    compiled: Callable[[torch.Tensor], object] = torch.compile(scale(), fullgraph=True, backend="eager")
    with torch.no_grad(), pytest.raises(RuntimeError, match="reason: This kernel cannot be traced.*engine package"):
        compiled(torch.ones(3))


def test_it_is_copied_saved_and_loaded_as_any_module() -> None:
    model, x = scale(), torch.ones(2, 3)
    state = {"weight": torch.full((3,), 5.0)}
    assert str(model.load_state_dict(state)) == "<All keys matched successfully>"
    assert copy.deepcopy(model)(x).equal(torch.full((2, 3), 5.0))
    stream = io.BytesIO()
    torch.save(model.state_dict(), stream)
    stream.seek(0)
    assert torch.load(stream)["weight"].equal(state["weight"])
    with torch.autocast("cpu", torch.bfloat16):
        assert model(x).dtype is torch.float32


def test_what_is_no_module_is_left_alone() -> None:
    _tilewright_guard(None, "cpu", "", "", False)
