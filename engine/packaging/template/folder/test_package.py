"""Tests of this package, for whoever installs it: python -m pytest tests. For a GPU they need one it is built for."""

import copy
import io
import os
import pickle
import subprocess
import sys

import pytest
import tilewright_package as package
import torch
from tilewright_package import _dispatch, _operators
from torch import nn

GPU = package.ENTRIES[0].device == "cuda"
if GPU and not torch.cuda.is_available():
    pytest.skip("its kernels need a GPU", allow_module_level=True)
if GPU and torch.cuda.get_device_capability() not in package.ENTRIES[0].capabilities:
    pytest.skip("its kernels are built for another GPU than this one", allow_module_level=True)
DEVICE = torch.device("cuda" if GPU else "cpu")
ENTRIES = pytest.mark.parametrize("number", range(len(package.ENTRIES)))
# Of the largest value. float32 in the precision class tf32 rounds operands to 11 bits.
CLOSE = {torch.float16: 1e-2, torch.bfloat16: 4e-2, torch.float64: 1e-9}
WIDELY_CLOSE = 2e-3
MOST_CONVERTED = 1 << 28  # elements; more would fill a GPU in float64


@pytest.fixture(autouse=True)
def _anew():
    torch.manual_seed(0)
    _dispatch.counts.clear()


def made(number, **options):
    """An original with weights that are no constants, the module made of it, and inputs."""
    entry = package.ENTRIES[number]
    original = _operators.reference_of(entry).to(DEVICE)
    if entry.mode != "train":
        original.eval()
    with torch.no_grad():
        for value in original.parameters():
            if value.is_floating_point():
                value.normal_(0, 0.5)
    inputs = [x.to(DEVICE) if isinstance(x, torch.Tensor) else x for x in package.example_inputs(entry)]
    return original, package.from_module(original, is_same=True, **options), inputs


def close(ours, theirs):
    pairs = [(ours, theirs)] if isinstance(ours, torch.Tensor) else list(zip(ours, theirs, strict=True))
    for a, b in pairs:
        assert a.shape == b.shape
        assert a.dtype == b.dtype
        if not b.numel():
            continue
        scale = float(b.double().abs().max()) or 1.0
        assert float((a.double() - b.double()).abs().max()) <= CLOSE.get(b.dtype, WIDELY_CLOSE) * scale


def gradients(model, inputs, original):
    """Of floating-point inputs and of the parameters, which the model shares with the original."""
    own = [x.clone().requires_grad_() if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in inputs]
    original.zero_grad()
    result = model(*own)
    outputs = [result] if isinstance(result, torch.Tensor) else result
    sum(output.square().mean() for output in outputs if output.is_floating_point()).backward()
    found = [x.grad for x in own if isinstance(x, torch.Tensor) and x.requires_grad]
    return [*found, *(value.grad.clone() for value in original.parameters() if value.grad is not None)]


def ran():
    """How many calls a kernel took, and how many PyTorch's own code."""
    kinds = [kind for kind, _ in _dispatch.counts.elements()]
    return kinds.count("kernel"), kinds.count("reference")


@ENTRIES
def test_the_kernel_takes_what_it_was_judged_with_and_is_right(number):
    original, module, inputs = made(number)
    with torch.no_grad():
        close(module(*inputs), original(*inputs))
    assert ran() == (1, 0)


@ENTRIES
def test_pytorch_s_checks_of_an_operator(number):
    _, module, inputs = made(number)
    entry = package.ENTRIES[number]
    values = _operators.arguments(entry, inputs, module._served.state(module, entry))
    checks = ["test_schema", "test_faketensor", "test_aot_dispatch_dynamic"]
    if not GPU:
        checks.append("test_autograd_registration")
    with torch.no_grad():
        torch.library.opcheck(_operators.operator(entry), tuple(values), test_utils=checks, rtol=1e-2, atol=1e-2)


@ENTRIES
@pytest.mark.filterwarnings("ignore")
def test_other_dtypes_and_layouts_run_pytorch_s_own_code(number):
    original, module, inputs = made(number)
    entry = package.ENTRIES[number]
    places = [n for n, x in enumerate(inputs) if isinstance(x, torch.Tensor) and x.is_floating_point()]
    if not places:
        pytest.skip("it takes no floating-point tensor")
    if sum(x.numel() for x in inputs if isinstance(x, torch.Tensor)) > MOST_CONVERTED:
        inputs = [x[:16].contiguous() if isinstance(x, torch.Tensor) and x.dim() else x for x in inputs]
    other = torch.float64 if inputs[places[0]].dtype is not torch.float64 else torch.float32
    with torch.no_grad():
        wide = [x.to(other) if n in places else x for n, x in enumerate(inputs)]
        close(copy.deepcopy(module).to(other)(*wide), copy.deepcopy(original).to(other)(*wide))
        gaps = [torch.stack([x, x], -1)[..., 0] if n in places and x.dim() else x for n, x in enumerate(inputs)]
        if any(not x.is_contiguous() for x in gaps if isinstance(x, torch.Tensor)):
            close(module(*gaps), original(*gaps))
            assert ran()[0] == 0
    assert ran()[1] >= 1
    assert entry.kernel not in str([reason for kind, reason in _dispatch.counts if kind == "reference"])


@ENTRIES
@pytest.mark.filterwarnings("ignore")
def test_other_sizes_are_right_whoever_computes_them(number):
    original, module, inputs = made(number)
    first = next((x for x in inputs if isinstance(x, torch.Tensor) and x.dim()), None)
    if first is None:
        pytest.skip("it takes no tensor with sizes")
    for length in {1, first.shape[0] - 1, first.shape[0] // 2 + 1} - {0, first.shape[0]}:
        shorter = [
            x[:length].contiguous() if isinstance(x, torch.Tensor) and x.dim() and x.shape[0] == first.shape[0] else x
            for x in inputs
        ]
        with torch.no_grad():
            try:
                wanted = original(*shorter)
            except RuntimeError:
                continue  # sizes that do not go together
            close(module(*shorter), wanted)


@ENTRIES
def test_torch_compile_makes_one_graph_of_it(number):
    original, module, inputs = made(number)
    torch._dynamo.reset()
    with torch.no_grad():
        compiled = torch.compile(nn.Sequential(module) if len(inputs) == 1 else module, fullgraph=True)
        close(compiled(*inputs), original(*inputs))
    assert ran() == (1, 0)


@ENTRIES
def test_torch_export_keeps_the_kernel(number):
    original, module, inputs = made(number)
    with torch.no_grad():
        program = torch.export.export(module, tuple(inputs))
        close(program.module()(*inputs), original(*inputs))
    if package.ENTRIES[number].how != "triton":
        assert package.ENTRIES[number].operator in str(program.graph)


@pytest.mark.skipif("AHEAD" not in os.environ, reason="AHEAD=1 compiles ahead of time too, which takes a minute")
@ENTRIES
def test_a_program_compiled_ahead_of_time_calls_the_kernel(number, tmp_path):
    original, module, inputs = made(number)
    if package.ENTRIES[number].how == "python":
        pytest.skip("an operator in Python needs Python")
    with torch.no_grad():
        program = torch.export.export(module, tuple(inputs))
        path = torch._inductor.aoti_compile_and_package(program, package_path=str(tmp_path / "program.pt2"))
        close(torch._inductor.aoti_load_package(path)(*inputs), original(*inputs))


@ENTRIES
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("how", package.ON_MISSING_BACKWARD)
def test_gradients_are_those_of_pytorch_or_an_error_never_nothing(number, how):
    original, module, inputs = made(number, on_missing_backward=how)
    entry = package.ENTRIES[number]

    if how == "raise" and not entry.has_backward:
        with pytest.raises(RuntimeError, match="no backward"):
            gradients(module, inputs, original)
        return
    for ours, theirs in zip(gradients(module, inputs, original), gradients(original, inputs, original), strict=True):
        close(ours, theirs)
    assert ran()[0] == (1 if how == "recompute" or entry.has_backward else 0)


@ENTRIES
@pytest.mark.filterwarnings("ignore")
def test_a_compiled_training_step_has_the_kernel_in_it(number):
    original, module, inputs = made(number, on_missing_backward="recompute")
    torch._dynamo.reset()
    ours = gradients(torch.compile(module, fullgraph=True), inputs, original)
    for a, b in zip(ours, gradients(original, inputs, original), strict=True):
        close(a, b)
    assert ran() == (1, 0)


@ENTRIES
def test_a_module_travels(number):
    original, module, inputs = made(number)
    with torch.no_grad():
        wanted = original(*inputs)
        close(copy.deepcopy(module)(*inputs), wanted)
        close(pickle.loads(pickle.dumps(module))(*inputs), wanted)
        buffer = io.BytesIO()
        torch.save(module, buffer)
        buffer.seek(0)
        close(torch.load(buffer, weights_only=False)(*inputs), wanted)
        module.load_state_dict(original.state_dict(), strict=True)
    assert list(module.state_dict()) == list(original.state_dict())


@ENTRIES
def test_kernels_go_into_a_network_and_out_again(number):
    original, _, inputs = made(number)
    network = nn.ModuleDict({"first": original, "second": original, "other": nn.Identity()})
    replaced = package.apply(network, where=lambda path, module: module is original)
    assert [place.path for place in replaced] == ["first", "second"]
    assert network["first"] is network["second"]
    with torch.no_grad():
        close(network["first"](*inputs), original(*inputs))
    assert package.revert(network) == ["first", "second"]
    assert network["first"] is original


@ENTRIES
@pytest.mark.filterwarnings("ignore")
def test_tracing_of_old_keeps_the_kernel_too(number):
    original, module, inputs = made(number)
    if any(not isinstance(x, torch.Tensor) for x in inputs):
        pytest.skip("it takes a number, which such traces hold as a constant")
    with torch.no_grad():
        close(torch.jit.trace(module, tuple(inputs), check_trace=False)(*inputs), original(*inputs))
        close(torch.fx.symbolic_trace(nn.Sequential(module))(*inputs) if len(inputs) == 1 else module(*inputs),
              original(*inputs))  # fmt: skip


@pytest.mark.skipif(not GPU, reason="CUDA graphs are of a GPU")
@ENTRIES
def test_a_cuda_graph_holds_the_call(number):
    original, module, inputs = made(number)
    if package.ENTRIES[number].is_capturable is False:
        pytest.skip("it cannot be captured, and the package does not try to")
    stream = torch.cuda.Stream()
    with torch.no_grad(), torch.cuda.stream(stream):
        for _ in range(3):
            module(*inputs)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        output = module(*inputs)
    for x in inputs:
        if isinstance(x, torch.Tensor) and x.is_floating_point():
            x.mul_(0.5)
    graph.replay()
    torch.cuda.synchronize()
    with torch.no_grad():
        close(output, original(*inputs))


@pytest.mark.skipif(not GPU or torch.cuda.device_count() < 2, reason="needs two GPUs")
@ENTRIES
def test_the_second_gpu_gets_its_own_calls(number):
    original, module, inputs = made(number)
    there = [x.to("cuda:1") if isinstance(x, torch.Tensor) else x for x in inputs]
    with torch.no_grad():
        close(copy.deepcopy(module).to("cuda:1")(*there), copy.deepcopy(original).to("cuda:1")(*there))


def test_a_second_process_needs_no_compiler():
    code = "import os; os.environ['PATH'] = ''; import tilewright_package"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)
