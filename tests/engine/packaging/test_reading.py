"""What a package takes of a kernel's text: what it builds, what its forward calls, and the text without that."""

from __future__ import annotations

import ast

import pytest

from engine.packaging import calls, literals, rewriting
from engine.packaging.calls import DirectCall
from engine.packaging.literals import Unreadable
from tests.engine.evaluator.checks.screening import recorded
from tests.engine.evaluator.languages.test_contract import TRITON

HEAD = "from torch.utils.cpp_extension import load_inline\nimport torch.nn as nn\n"


def built(text: str) -> literals.Build:
    (build,) = literals.builds(ast.parse(HEAD + text))
    return build


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("'a' + NAME", "abc"),
        ("f'{NAME}-{COUNT}'", "bc-4"),
        ("'T'.replace('T', NAME)", "bc"),
        ("'{}+{}'.format(NAME, COUNT)", "bc+4"),
        ("'%d' % COUNT", "4"),
        ("[NAME, 'x']", ["bc", "x"]),
        ("' '.join([NAME, str(COUNT + 1)])", "bc 5"),
        ("textwrap.dedent('  a')", "a"),
    ],
)
def test_texts_are_put_together_as_python_would(expression: str, value: object) -> None:
    build = built(f"NAME = 'bc'\nCOUNT = 4\nload_inline(name='k', cpp_sources={expression})")
    assert build.arguments == {"name": "k", "cpp_sources": value}


@pytest.mark.parametrize(
    "expression",
    ["open('x').read()", "NAME.format(a.b)", "'{0.__class__}'.format(COUNT)", "TWICE", "*PARTS", "'x' * 10 ** 9"],
)
def test_what_is_worked_out_while_the_file_runs_is_not_guessed(expression: str) -> None:
    with pytest.raises(Unreadable):
        built(f"NAME = 'bc'\nCOUNT = 4\nTWICE = 'a'\nTWICE = 'b'\nPARTS = []\nload_inline('k', {expression})")


@pytest.mark.parametrize("task", recorded.CUDA_TASKS)
def test_the_texts_of_every_recorded_kernel_can_be_read_and_leave_a_file_that_parses(task: str) -> None:
    for source in recorded.kernels(task, "cuda").values():
        module = ast.parse(source)
        found = literals.builds(module)
        assert found
        assert all(build.arguments["cuda_sources"] for build in found)
        text = rewriting.with_libraries(source, module, dict.fromkeys(found, "kernel_1"))
        assert "__global__" not in text
        assert "library as _tilewright_library" in text
        ast.parse(text)


MODULE = (
    HEAD
    + """
library = load_inline("k", cpp_sources="", functions=["run"])
run = library.run
class ModelNew(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.norm = nn.LayerNorm(shape)
        self.call = library.run
    def forward(self, x, scale):
        {body}
"""
)


def found(
    body: str, inputs: tuple[str, ...] = ("x", "s"), state: tuple[str, ...] = ("norm.weight",), strided: str = ""
) -> object:
    module = ast.parse(MODULE.replace("{body}", body))
    (build,) = literals.builds(module)
    return calls.direct_call(module, {build.node: 0}, inputs, state, strided={strided} - {""})


ORDER = (("input", "x"), ("state", "norm.weight"), ("input", "s"), ("constant", "norm.eps"))


@pytest.mark.parametrize(
    "body",
    [
        "return library.run(x, self.norm.weight, scale, self.norm.eps)",
        "norm = self.norm; return run(x.contiguous(), norm.weight, scale, norm.eps)",
        "'''Doc.'''; return self.call(x, self._modules['norm']._parameters['weight'], scale, self.norm.eps)",
    ],
)
def test_a_forward_that_is_one_call_is_found_with_what_it_hands_over(body: str) -> None:
    assert found(body) == DirectCall(0, "run", ORDER)


def test_a_copy_of_a_weight_is_none_where_the_weight_is_contiguous_alone() -> None:
    body = "return library.run(x, self.norm.weight.contiguous(), scale, self.norm.eps)"
    assert found(body) == DirectCall(0, "run", ORDER)
    assert found(body, strided="norm.weight") is None


@pytest.mark.parametrize(
    "body",
    [
        "return library.run(x, self.norm.weight, scale, self.norm.eps) + 1",
        "x = x + 1; return library.run(x, self.norm.weight, scale)",
        "return library.run(x, self.norm.weight)",  # one input short
        "return library.run(x, scale)",  # without the state
        "return library.run(x, self.norm.weight.t(), scale)",
        "return library.run(x, self.norm.weight, s=scale)",
        "return other(x, self.norm.weight, scale)",
        "return library.run(x, x, self.norm.weight, scale)",
    ],
)
def test_any_other_forward_stays_python(body: str) -> None:
    assert found(body) is None


def test_launches_of_triton_kernels_are_wrapped_and_nothing_else() -> None:
    module = ast.parse(TRITON)
    text = rewriting.with_wrapped_launches(TRITON, module)
    launches = [ast.unparse(node) for node in calls.launches(module)]
    assert launches
    for name in launches:
        assert f"_tilewright_triton({name})[" in text
    assert text.count("_tilewright_triton(") == len(launches)
    ast.parse(text)


def test_an_import_is_added_behind_those_that_must_come_first() -> None:
    source = '"""Doc."""\nfrom __future__ import annotations\nimport triton\n'
    lines = rewriting.with_wrapped_launches(source, ast.parse(source)).splitlines()
    assert lines[1] == "from __future__ import annotations"
    assert lines[2] == "from torch.library import wrap_triton as _tilewright_triton"
