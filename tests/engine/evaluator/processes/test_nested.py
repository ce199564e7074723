"""Arguments by name, objects among arguments and results, and nested results: handed over, compared, or refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine.errors import TaskError
from engine.evaluator import tasks
from engine.evaluator.tasks import Task
from engine.evaluator.toolchains.cpu import CpuToolchain
from storage.results.evaluation_results import TimingResult
from storage.results.policy import EVERYTHING, Policy
from storage.results.vocabulary import Verdict
from tests.engine.evaluator.processes.references import kernel

HEAD = """import collections
import dataclasses
from collections import OrderedDict
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils import _pytree as pytree


@dataclasses.dataclass
class Batch:
    ids: torch.Tensor
    mask: torch.Tensor | None = None
    scale: float = 2.0


class Pair(NamedTuple):
    left: torch.Tensor
    right: torch.Tensor


@dataclasses.dataclass
class Output(OrderedDict):
    \"\"\"As transformers' ModelOutput: fields that are set are items too.\"\"\"

    logits: torch.Tensor
    loss: torch.Tensor | None = None
    hidden: tuple | None = None

    def __post_init__(self):
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value is not None:
                super().__setitem__(field.name, value)

    def __getitem__(self, key):
        return dict(self.items())[key] if isinstance(key, str) else tuple(self.values())[key]


class Cache:
    def __init__(self, keys, values):
        self.layers = list(zip(keys, values))

    def last(self):
        return self.layers[-1][0]


pytree.register_pytree_node(
    Cache, lambda cache: ([part for layer in cache.layers for part in layer], len(cache.layers)),
    lambda parts, count: Cache(list(parts)[0::2], list(parts)[1::2]),
)


def draw(*shape):
    return torch.randn(*shape)


class Model(nn.Module):
    def forward(self, {arguments}):
{forward}


def get_inputs():
    return {inputs}


def get_init_inputs():
    return []
"""


def task(folder: Path, forward: str, inputs: str, arguments: str, policy: Policy | None = None) -> Task:
    path = folder / "nested.py"
    lines = "\n".join(f"        {line}" for line in forward.splitlines())
    text = HEAD
    for slot, value in (("{arguments}", arguments), ("{forward}", lines), ("{inputs}", inputs)):
        text = text.replace(slot, value)
    path.write_text(text)
    read = tasks.read(path).task()
    return replace(read, policy=replace(policy or Policy(), library_operators=(EVERYTHING,)))


X = "[draw(8, 6)]"
NAMED = "([draw(8, 6)], {'mask': torch.rand(8, 6) > 0.3, 'scale': 3})"
RETURNS = {
    "model output": (
        "return Output(logits=x * 2, hidden=(x + 1, (x.sum(1),)))",
        "return {'logits': x * 2, 'hidden': (x + 1, [x.sum(1)])}",
    ),
    "dataclass": ("return Batch(x * 2, None, 0.5)", "return {'ids': x * 2, 'mask': None, 'scale': 0.5}"),
    "cache": ("return x + 1, Cache([x * 2], [x * 3])", "return x + 1, [x * 2, x * 3]"),
    "nested": ("return x * 2, ((x + 1, x - 1), None), 'done'", "return x * 2, [(x + 1, x - 1), None], 'done'"),
    "pair": ("return Pair(x * 2, {1: x + 1, 'two': True})", "return x * 2, {'two': True, 1: x + 1}"),
}


@pytest.mark.parametrize("name", RETURNS)
def test_a_result_of_any_form_is_compared_leaf_by_leaf(cpu: CpuToolchain, tmp_path: Path, name: str) -> None:
    theirs, ours = RETURNS[name]
    given = task(tmp_path, theirs, X, "x")
    assert cpu.examine(given).is_decided
    right = cpu.check(given, kernel(ours))
    assert right.verdict is Verdict.PASSED, right.message
    wrong = cpu.check(given, kernel(ours.replace("x + 1", "x + 1.01").replace("x * 2", "x * 2.01")))
    assert wrong.verdict is Verdict.INCORRECT
    assert "wrong in trial 'own 1'" in wrong.message


@pytest.mark.parametrize(
    ("inputs", "arguments", "theirs", "ours"),
    [
        (NAMED, "x, *, mask, scale=1", "return x * mask * scale", "return x * mask * scale"),
        ("([], {'input_ids': torch.randint(0, 9, (8, 6)), 'x': draw(8, 6)})", "x=None, input_ids=None",
         "return x * input_ids", "return x * input_ids"),
        ("[Batch(draw(8, 6), scale=4.0)]", "batch", "return batch.ids * batch.scale", "return batch.ids * batch.scale"),
        ("[Pair(draw(8, 6), draw(8, 6))]", "pair", "return pair.left + pair[1]",
         "left, right = pair\nreturn left + right"),
        ("[Output(draw(8, 6), hidden=(draw(8, 6),))]", "out", "return out['logits'] + out[1][0]",
         "assert out.loss is None\nreturn out['logits'] + out[1][0]"),
        ("[OrderedDict(a=draw(8, 6), b=[draw(8, 6), None])]", "d", "return d['a'] + d['b'][0]",
         "return d['a'] + d['b'][0]"),
        ("[draw(8, 6), Cache([draw(8, 6)], [draw(8, 6)])]", "x, cache", "return x + cache.last()",
         "return x + cache[0]"),
        ("[draw(8, 6), [(draw(8, 6), draw(8, 6)), (draw(8, 6), draw(8, 6))]]", "x, past",
         "return x + past[1][0], tuple((k * 2, v) for k, v in past)",
         "return x + past[1][0], [(k * 2, v.clone()) for k, v in past]"),
    ],
)  # fmt: skip
def test_arguments_of_any_form_reach_a_kernel(
    cpu: CpuToolchain, tmp_path: Path, inputs: str, arguments: str, theirs: str, ours: str
) -> None:
    given = task(tmp_path, theirs.replace(", v)", ", v + 0)"), inputs, arguments)
    checked = cpu.check(given, kernel(ours, arguments=arguments))
    assert checked.verdict is Verdict.PASSED, checked.message


def test_a_call_by_name_with_a_nested_result_is_timed_and_told(cpu: CpuToolchain, tmp_path: Path) -> None:
    forward = "return {'y': torch.tanh(x) * mask, 'last': (x[-1] * scale, None, 7)}"
    given = task(tmp_path, forward, NAMED, "x, *, mask, scale")
    timed = cpu.time(given, kernel(forward, arguments="x, *, mask, scale"))
    assert isinstance(timed, TimingResult), timed
    assert cpu.limit(given).signature == (
        "forward(float32[8, 6], mask=bool[8, 6], scale=3) returns {'last': (float32[6], None, 7), 'y': float32[8, 6]}"
    )
    assert cpu.limit(task(tmp_path, "return x * 2, x + 1", X, "x")).signature == ""


@pytest.mark.parametrize(
    ("ours", "says"),
    [
        ("return {'a': x * 2}", "forward returned a dict {'a': a tensor}. Expected a dict {'a': a tensor, 'b': "),
        ("return {'a': x * 2, 'b': (x + 1, None, 3), 'c': x + 0}", "'c': a tensor}. Expected"),
        ("return {'a': None, 'b': (x + 1, None, 3)}", "{'a': None, 'b'"),
        ("return {'a': x * 2, 'b': (x + 1, None, 4)}", "(a tensor, None, 4)"),
        ("return {'a': x * 2, 'b': (x + 1, None, True)}", "(a tensor, None, True)"),
        ("return {'a': x * 2, 'b': (x + 1, x + 1, 3)}", "(a tensor, a tensor, 3)"),
        ("return {'a': x * 2, 'b': ({1, 2}, None, 3)}", "output 'b'[0] is a builtins.set, not a torch.Tensor"),
        ("return {'a': x * 2, 'b': (x[:4] + 1, None, 3)}", "output 'b'[0] has shape (4, 6)"),
        ("return {'a': (x * 2).double(), 'b': (x + 1, None, 3)}", "output 'a' has dtype float64"),
        ("return {'a': x * 2, 'b': (x, None, 3)}", "output 'b'[0] shares memory with an input"),
        ("b = []\nb.append(b)\nreturn {'a': x * 2, 'b': b}", "nests them more than"),
        ("return {'a': x * 2, 'b': [x + 1] * 100_000}", "more than 4,096 values"),
        ("self.y = getattr(self, 'y', x * 0)\nself.y = torch.add(x, 1, out=self.y)\n"
         "return {'a': x * 2, 'b': (self.y, None, 3)}", "output 'b'[0] shares memory with the output of an earlier"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_nested_place_is_found_and_named(
    cpu: CpuToolchain, tmp_path: Path, ours: str, says: str
) -> None:
    given = task(tmp_path, "return {'a': x * 2, 'b': (x + 1, None, 3)}", X, "x")
    checked = cpu.check(given, kernel(ours))
    assert checked.verdict in (Verdict.INCORRECT, Verdict.RUNTIME_ERROR), checked
    assert says in checked.message


LYING = """
import dataclasses


class Lying(dict):
    def keys(self):
        return ["a", "b"]

    def items(self):
        return [("a", self["a"]), ("b", self["b"])]

    __iter__ = keys

    def __len__(self):
        return 2

    def __getitem__(self, key):
        return {"a": X[0] * 2, "b": (X[0] + 1, None, 3)}[key]


class Meta(type):
    def __eq__(self, other):
        raise SystemExit("asked")

    def __hash__(self):
        raise SystemExit("asked")


class Kept(metaclass=Meta):
    @property
    def __class__(self):
        return dict


class Odd:
    def __repr__(self):
        raise SystemExit("asked")


@dataclasses.dataclass
class Late(metaclass=type("LateMeta", (type,), {"__hash__": Meta.__hash__, "__getattribute__": type.__getattribute__})):
    a: object
    b: object

    def __getattribute__(self, name):
        raise SystemExit("asked")


@dataclasses.dataclass(slots=True)
class Slotted:
    a: object
    b: object


X = [None]
"""


@pytest.mark.parametrize(
    ("ours", "says"),
    [
        ("X[0] = x\nreturn Lying()", "forward returned a dict {}"),
        ("X[0] = x\nreturn Lying(a=x * 2, b=x)", "forward returned a dict {'a': a tensor, 'b': a tensor}"),
        ("return Late(x * 2, (x[1:] + 1, None, 3))", "output 'b'[0] has shape (7, 6)"),
        ("return Slotted(x * 2, (x[1:] + 1, None, 3))", "output 'b'[0] has shape (7, 6)"),
        ("return Kept()", "forward returned a tensor"),
        ("return {'a': Kept(), 'b': (x + 1, None, 3)}", "output 'a' is a candidate.Kept"),
        ("return {Odd(): x * 2, 'b': (x + 1, None, 3)}", "<Odd>: a tensor}"),
    ],
)
def test_a_container_that_lies_is_read_as_what_it_is(cpu: CpuToolchain, tmp_path: Path, ours: str, says: str) -> None:
    given = task(tmp_path, "return {'a': x * 2, 'b': (x + 1, None, 3)}", X, "x")
    checked = cpu.check(given, kernel(ours, more=LYING))
    assert checked.verdict in (Verdict.INCORRECT, Verdict.RUNTIME_ERROR), checked
    assert says in checked.message, checked.message


def test_inputs_changed_in_a_nested_place_are_named(cpu: CpuToolchain, tmp_path: Path) -> None:
    given = task(tmp_path, "return x['a'][0] * 2", "([], {'x': {'a': [draw(8, 6)]}})", "x")
    checked = cpu.check(given, kernel("return x['a'][0].mul_(2) + 0"))
    assert "forward changed its input 'x'['a'][0] in place" in checked.message


def test_gradients_are_asked_of_nested_and_named_inputs(cpu: CpuToolchain, tmp_path: Path) -> None:
    theirs = "return {'y': x * pair.left, 'z': (torch.tanh(more['w']), None)}"
    inputs = "([draw(8, 6), Pair(draw(8, 6), draw(8, 6))], {'more': {'w': draw(8, 6)}})"
    given = task(tmp_path, theirs, inputs, "x, pair, *, more", Policy(backward=True))
    arguments = "x, pair, *, more"
    right = cpu.check(given, kernel(theirs, arguments=arguments))
    assert right.verdict is Verdict.PASSED, right.message
    wrong = cpu.check(given, kernel(theirs.replace("pair.left", "pair.left.detach()"), arguments=arguments))
    assert "the gradient of input 1.left is missing" in wrong.message
    other = cpu.check(given, kernel(theirs.replace("None", "3"), arguments=arguments))
    assert "forward returned a dict {'y': a tensor, 'z': a tuple or list of (a tensor, 3)}, not a dict" in other.message


@pytest.mark.parametrize(
    ("forward", "inputs", "says"),
    [
        ("return x, int(x.sum() * 1000)", X, "must be the same in every call"),
        ("return x, {1, 2}", X, "returns a set among its results"),
        ("return x * 2", "draw(8, 6)", "return the arguments of forward as a list"),
        ("return x * 2", "{'x': draw(8, 6)}", r"\(args, kwargs\)"),
        ("return x * 2", "[draw(8, 6), {3, 4}]", "a set: use tensors"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_words(
    cpu: CpuToolchain, tmp_path: Path, forward: str, inputs: str, says: str
) -> None:
    with pytest.raises(TaskError, match=says):
        cpu.examine(task(tmp_path, forward, inputs, "x, *more"))
