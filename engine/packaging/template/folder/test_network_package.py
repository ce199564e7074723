"""Tests of this package, for whoever installs it: python -m pytest tests. For a GPU they need one it is built for.

The network itself is not here: modules that compute what its places do stand in for them.
"""

import pytest
import tilewright_package as package
import torch
from tilewright_package import _dispatch, _forms, _operators
from torch import nn

GPU = package.ENTRIES[0].device == "cuda"
if GPU and not torch.cuda.is_available():
    pytest.skip("its kernels need a GPU", allow_module_level=True)
if GPU and torch.cuda.get_device_capability() not in package.ENTRIES[0].capabilities:
    pytest.skip("its kernels are built for another GPU than this one", allow_module_level=True)
DEVICE = torch.device("cuda" if GPU else "cpu")
ENTRIES = pytest.mark.parametrize("number", range(len(package.ENTRIES)))
MODULES = pytest.mark.parametrize(
    "region", [region for region in package.REGIONS if region.places], ids=lambda r: r.name
)
FUSED = pytest.mark.parametrize(
    "region", [region for region in package.REGIONS if not region.places], ids=lambda r: r.name
)
# Of the largest value. float32 in the precision class tf32 rounds operands to 11 bits.
CLOSE = {torch.float16: 1e-2, torch.bfloat16: 4e-2, torch.float64: 1e-9}
WIDELY_CLOSE = 2e-3


@pytest.fixture(autouse=True)
def _anew():
    torch.manual_seed(0)
    torch._dynamo.reset()
    _dispatch.counts.clear()


def made(number):
    """The reference of an entry, inputs, and its parameters in the table's order."""
    entry = package.ENTRIES[number]
    reference = _operators.reference_of(entry).to(DEVICE).eval()
    inputs = [x.to(DEVICE) for x in package.example_inputs(entry)]
    held = dict(reference.named_parameters()) | dict(reference.named_buffers())
    return entry, reference, inputs, [held[wanted.name].detach() for wanted in entry.state]


def close(ours, theirs):
    pairs = [(ours, theirs)] if isinstance(ours, torch.Tensor) else list(zip(ours, theirs, strict=True))
    for a, b in pairs:
        assert a.shape == b.shape
        assert a.dtype == b.dtype
        scale = float(b.double().abs().max()) if b.numel() else 1.0
        assert float((a.double() - b.double()).abs().max()) <= CLOSE.get(b.dtype, WIDELY_CLOSE) * (scale or 1.0)


@ENTRIES
def test_the_kernel_is_right_for_inputs_as_it_was_judged_with(number):
    entry, reference, inputs, state = made(number)
    with torch.no_grad():
        values = _operators.arguments(entry, inputs, state)
        close(_operators.operator(entry)(*values), reference(*inputs))


@ENTRIES
def test_pytorch_s_checks_of_an_operator(number):
    entry, _, inputs, state = made(number)
    values = _operators.arguments(entry, inputs, state)
    with torch.no_grad():
        checks = ["test_schema", "test_faketensor", "test_aot_dispatch_dynamic"]
        torch.library.opcheck(_operators.operator(entry), tuple(values), test_utils=checks, rtol=1e-2, atol=1e-2)


def stand_in(region):
    """A network whose modules at the region's places compute what they did in the network."""
    reference = made(region.entries[0])[1]
    network = nn.Module()
    for path in region.places:
        owner = network
        *holders, last = path.split(".")
        for name in holders:
            if name not in owner._modules:
                owner.add_module(name, nn.Module())
            owner = owner._modules[name]
        owner.add_module(last, place(region, reference))
    return network


def place(region, reference):
    def forward(self, *args, **kwargs):
        tensors = {}
        assert _forms.take(region.takes, (args, kwargs), tensors)
        inputs = [tensors[number] for number in range(len(tensors))]
        result = original(self, *inputs)
        computed = [result] if isinstance(result, torch.Tensor) else list(result)
        return _forms.put(region.gives, [*computed, *inputs])

    original = type(reference).forward
    module = _operators.reference_of(package.ENTRIES[region.entries[0]]).to(DEVICE).eval()
    module.load_state_dict(reference.state_dict())
    module.__class__ = type(region.kind, (type(reference),), {"forward": forward})
    return module


def called(region):
    """What the region's modules are called with."""
    _, _, inputs, _ = made(region.entries[0])
    try:
        return _forms.put(region.takes, inputs)
    except _forms.NoForm:
        pytest.skip("its modules are given a tensor that the work does not depend on")


def tensors(result):
    found = []
    _forms.form_of(result, found)
    return found


@MODULES
def test_a_network_s_modules_call_the_kernel_and_share_their_parameters(region):
    network = stand_in(region)
    args, kwargs = called(region)
    before = {name: id(value) for name, value in network.named_parameters()}
    with torch.no_grad():
        module = network.get_submodule(region.places[0])
        expected = tensors(module(*args, **kwargs))
        assert {replaced.path for replaced in package.apply(network, [region.name])} == set(region.places)
        assert {name: id(value) for name, value in network.named_parameters()} == before
        close(tensors(network.get_submodule(region.places[0])(*args, **kwargs)), expected)
        assert [kind for kind, _ in _dispatch.counts] == ["kernel"]
    assert set(package.revert(network)) == set(region.places)
    assert network.get_submodule(region.places[0]) is module


@MODULES
@pytest.mark.filterwarnings("ignore")
def test_a_call_that_is_put_together_otherwise_runs_the_module_s_own_code(region):
    network = stand_in(region)
    args, kwargs = called(region)
    package.apply(network, [region.name])
    with torch.no_grad(), pytest.raises(Exception):  # noqa: B017 - the stand-in takes no other call either
        network.get_submodule(region.places[0])(*args, **kwargs, another=1)
    assert [kind for kind, _ in _dispatch.counts] == ["reference"]


@MODULES
def test_a_module_that_computes_something_else_is_refused(region):
    network = stand_in(region)
    called(region)
    module = network.get_submodule(region.places[0])
    forward = type(module).forward

    def other(self, *args, **kwargs):
        result = forward(self, *args, **kwargs)
        numbers = iter([tensor + 1 for tensor in tensors(result)])
        return _forms.put(_forms.form_of(result, []), list(numbers))

    type(module).forward = other
    with pytest.raises(ValueError, match="is none of region"):
        package.apply(network, [region.name])
    assert network.get_submodule(region.places[0]) is module


@FUSED
def test_operators_of_a_compiled_network_are_replaced(region):
    _, reference, inputs, _ = made(region.entries[0])

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = reference

        def forward(self, *values):
            return self.inner(*values)

    network = Network()
    with torch.no_grad():
        expected = network(*inputs)
        close(package.compile(network, [region.name], inner=package.EAGER)(*inputs), expected)
    assert [kind for kind, _ in _dispatch.counts] == ["kernel"], package.report()
