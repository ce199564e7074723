from dataclasses import replace
from pathlib import Path

import pytest

from engine.errors import TaskError
from engine.evaluator import tasks
from storage.results.policy import NOTHING, Draws, Policy, Weights, arithmetic_of
from storage.results.vocabulary import KernelClass

FOREIGN = """\
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return x + 1

N = 2048 * 2
M, SCALE = 3, 4
eps = 1e-5
name = "text"

def get_inputs():
    return [torch.rand(N)]  # N stays a name

def get_init_inputs():
    return []
"""


def test_shipped_tasks_state_their_class_and_sizes_for_cpu_and_gpu() -> None:
    found = list(tasks.shipped())
    assert len(found) >= 36
    assert {task.kernel_class for task in found} == set(KernelClass) - {KernelClass.OTHER}
    one_shape = {task.name for task in found if not task.policy.other_sizes}
    # Their recorded kernels were written for one size.
    assert one_shape == {"diagonal_matmul", "hard_tanh", "softmax", "square_matmul", "swish"}
    assert {task.name for task in found} >= {"square_matmul", "diagonal_matmul", "swish", "softmax"}
    for task in found:
        assert task.kernel_class is not None
        assert set(task.presets) == {"cpu", "gpu"}
        assert task.task("cpu").sizes == {**task.constants, **task.presets["cpu"]}


def test_a_foreign_file_runs_with_its_constants_overridden_and_nothing_else_changed(tmp_path: Path) -> None:
    path = tmp_path / "plus.py"
    path.write_text(FOREIGN)
    task = tasks.read(path)
    assert task.constants == {"N": 4096, "M": 3, "SCALE": 4, "eps": 1e-5}
    assert task.kernel_class is None
    changed = task.task("cpu", {"N": 512, "SCALE": 16})
    assert changed.source == FOREIGN.replace("2048 * 2", "512").replace("3, 4", "3, 16")
    assert changed.sizes == {"N": 512, "M": 3, "SCALE": 16, "eps": 1e-5}


def test_names_that_one_assignment_gives_a_value_change_together(tmp_path: Path) -> None:
    path = tmp_path / "square.py"
    path.write_text(FOREIGN.replace("eps = 1e-5", "height = width = 256  # both"))
    task = tasks.read(path).task("cpu", {"height": 64})
    assert "height = width = 64  # both" in task.source
    assert (task.sizes["height"], task.sizes["width"]) == (64, 64)
    with pytest.raises(TaskError, match="height and width together: set them to one value"):
        tasks.read(path).task("cpu", {"height": 64, "width": 32})


def test_an_unknown_constant_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    path = tmp_path / "plus.py"
    path.write_text(FOREIGN)
    with pytest.raises(TaskError, match="no module-level number K to set. Available: N=4096"):
        tasks.read(path).task("cpu", {"K": 1})


def test_a_size_is_a_number_as_the_one_in_whose_place_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "plus.py"
    path.write_text(FOREIGN.replace('name = "text"', "padding, axis = 0, -1"))
    task = tasks.read(path)
    for name, value in {"N": -5, "M": 0, "SCALE": 2.7, "padding": -1, "axis": -1.5, "eps": float("inf")}.items():
        with pytest.raises(TaskError, match=rf"{name}={value:g} is not valid: {name} is a (whole|finite) number"):
            task.task("cpu", {name: value})
    with pytest.raises(TaskError, match=r"N=-5 is not valid: N is a whole number from 1 \(4096 in the task\)"):
        task.task("cpu", {"N": -5})
    changed = task.task("cpu", {"N": 2e3, "padding": 0, "axis": -2, "eps": -1})
    assert "N = 2000\n" in changed.source
    assert changed.sizes == {"N": 2000, "M": 3, "SCALE": 4, "eps": -1, "padding": 0, "axis": -2}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1\n", "does not define Model, get_inputs, get_init_inputs"),
        ("class Model: ...\ndef get_inputs(): ...\n", "does not define get_init_inputs"),
        ("def broken(:\n", "not valid Python"),
    ],
)
def test_a_file_that_is_no_task_says_what_is_missing(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "bad.py"
    path.write_text(text)
    with pytest.raises(TaskError, match=words):
        tasks.read(path)


def test_an_unknown_name_lists_the_shipped_tasks() -> None:
    with pytest.raises(TaskError, match="square_matmul"):
        tasks.find("no_such_task")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="absent.py"):
        tasks.find(str(tmp_path / "absent.py"))


@pytest.mark.parametrize(
    ("lines", "proposed"),
    [
        (["self.a = nn.Conv2d(3, 8, 3)", "self.b = nn.Linear(8, 8)"], ()),
        (["self.parts = [nn.Linear(8, 8) for _ in range(9)]", "self.b = nn.Conv2d(3, 8, 3)"], ("conv2d", "linear")),
        (["for _ in range(9):", "    self.parts.append(nn.Linear(8, 8))"], ()),
        (["self.a = nn.TransformerEncoderLayer(8, 2)"], ("linear", "scaled_dot_product_attention")),
        (["self.a, self.b = nn.LSTM(8, 8), nn.GRU(8, 8)", "x @ y", "torch.matmul(x, y)"], ("gru", "lstm", "matmul")),
    ],
    ids=["few", "made in a loop", "one in a loop", "a layer of several", "several kinds"],
)
def test_a_whole_network_leaves_its_large_operators_to_pytorch(
    tmp_path: Path, lines: list[str], proposed: tuple[str, ...]
) -> None:
    body = "".join(f"        {line}\n" for line in lines)
    network = f"class Part(nn.Module):\n    def __init__(self):\n{body}\n\n"
    (tmp_path / "net.py").write_text(network + FOREIGN)
    assert tasks.read(tmp_path / "net.py").policy.library_operators == proposed
    (tmp_path / "net.toml").write_text("[policy]\nlibrary_operators = []\n")
    assert tasks.read(tmp_path / "net.py").policy.library_operators == ()


@pytest.mark.parametrize(
    ("layers", "line", "is_chain"),
    [
        ("nn.Linear(8, 8)", "self.a(x)", False),
        ("nn.Linear(8, 8)", "torch.relu(self.a(x))", True),
        ("nn.Linear(8, 8)", "self.a(x) * 0.5", True),
        ("nn.Linear(8, 8)", "x @ x", True),
        ("nn.GELU()", "torch.softmax(self.a(x), 1)", False),
        ("nn.TransformerEncoderLayer(8, 2)", "self.a(x)", True),
        ("nn.Identity()", "torch.softmax(x @ x, 1) @ x", False),
    ],
    ids=["one layer", "epilogue", "arithmetic", "two products", "no product", "transformer", "attention"],
)
def test_a_chain_has_a_product_and_something_behind_it(layers: str, line: str, is_chain: bool) -> None:
    module = f"class Model(nn.Module):\n    def __init__(self):\n        self.a = {layers}\n\n"
    assert tasks.is_chain(f"{module}    def forward(self, x):\n        return {line}\n") is is_chain
    assert not tasks.is_chain("class")


def test_recurrent_layers_that_pytorch_does_not_keep_make_a_recurrence() -> None:
    module = "class Model(nn.Module):\n    def __init__(self):\n        self.a = nn.GRU(8, 8)\n"
    assert tasks.is_recurrence(module)
    assert not tasks.is_recurrence(module, ["gru"])
    assert not tasks.is_recurrence(module.replace("GRU", "Linear"))


GATED = """import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.n, self.a, self.b = nn.LayerNorm(8), nn.Linear(8, 8), nn.Conv2d(1, 1, 3)

    def forward(self, x):
        return torch.sigmoid(self.b(self.a(self.n(x)) @ x))


"""


@pytest.mark.parametrize(
    ("library", "kind"),
    [
        ("none", "convolution"),
        ("conv2d", "matmul"),
        ("conv,linear", "matmul"),  # the @ is to be written
        ("conv2d,linear,matmul", "reduction"),
        ("conv2d,linear,matmul,layer_norm", "activation"),
        ("conv1d,linear,matmul", "convolution"),
        ("all", "convolution"),
    ],
)
def test_the_class_is_guessed_by_what_is_left_to_write(tmp_path: Path, library: str, kind: str) -> None:
    (tmp_path / "gate.py").write_text(GATED + FOREIGN)
    file = tasks.read(tmp_path / "gate.py")
    file = replace(file, policy=tasks.policy_with(file.policy, library))
    assert file.guessed_class == file.task().guessed_class == kind


def test_a_persons_choice_changes_the_policy_and_an_empty_one_does_not() -> None:
    policy = Policy(library_operators=("conv2d",))
    assert tasks.policy_with(policy) == policy
    assert tasks.policy_with(policy, "none", "tf32") == Policy(precision="tf32")
    assert tasks.policy_with(policy, "all").library_operators == ("*",)
    assert tasks.policy_with(policy, " matmul, mm ,").library_operators == ("matmul", "mm")
    assert [tasks.policy_with(policy, text).library_in_words for text in ("none", "", "all")] == [
        NOTHING, "conv2d", "anything",
    ]  # fmt: skip


@pytest.mark.parametrize(("library", "precision", "said"), [("conv 2d", "", "'conv 2d'"), ("", "fp8", "'fp8'")])
def test_a_choice_that_cannot_be_is_named(library: str, precision: str, said: str) -> None:
    with pytest.raises(TaskError, match=said):
        tasks.policy_with(Policy(), library, precision)


def test_what_is_tried_is_chosen_by_name_and_a_task_has_its_own(tmp_path: Path) -> None:
    chosen = {"mode": "train", "weights": "fixed", "state_dict": "any", "draws": "seeded", "strides": "any"}
    found = tasks.policy_with(Policy(), **chosen)
    assert {name: str(getattr(found, name)) for name in chosen} == chosen
    assert tasks.policy_with(found, mode="own", weights="", draws=None).mode == ""
    assert tasks.policy_with(found, weights="").weights is Weights.FIXED
    (tmp_path / "mine.py").write_text(FOREIGN)
    (tmp_path / "mine.toml").write_text('[policy]\nmode = "eval"\ndraws = "seeded"\nother_sizes = "secret"\n')
    own = tasks.read(tmp_path / "mine.py").policy
    assert (own.mode, own.draws, own.other_sizes, own.secret_sizes) == ("eval", Draws.SEEDED, (), True)


def test_a_mode_stands_in_the_name_and_beside_every_figure() -> None:
    found = tasks.find("softmax-bf16-eval-backward")
    assert (found.name, found.policy.mode) == ("softmax-bf16-eval-backward", "eval")
    assert found.policy.measured == "bf16, evaluation mode, forward and backward"
    assert found.policy.baseline == ", bf16, evaluation mode, forward and backward"
    assert [arithmetic_of(Policy("tf32", mode=mode).measured) for mode in ("", "train")] == ["tf32", "tf32"]
    assert arithmetic_of(found.policy.measured) == "half"


def test_modules_that_are_compared_stand_in_the_name_and_beside_every_figure() -> None:
    found = tasks.find("softmax-eval-modules2")
    assert (found.name, found.policy.compare_modules) == ("softmax-eval-modules2", 2)
    assert found.policy.measured == "fp32, evaluation mode, compared module by module"
    assert arithmetic_of(found.policy.measured) == "fp32"


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ("mode", "mode 'x' is unknown; choose eval or train"),
        ("weights", "weights 'x' is unknown; choose vary or fixed"),
    ],
)
def test_a_choice_of_what_is_tried_that_does_not_exist_is_named(tmp_path: Path, chosen: str, said: str) -> None:
    with pytest.raises(TaskError, match=said):
        tasks.policy_with(Policy(), **{chosen: "x"})
    (tmp_path / "mine.py").write_text(FOREIGN)
    (tmp_path / "mine.toml").write_text(f'[policy]\n{chosen} = "x"\n')
    with pytest.raises(TaskError, match=rf"mine\.toml: {said}"):
        tasks.read(tmp_path / "mine.py")


def test_a_task_does_not_choose_the_rules_that_judge_it(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FOREIGN)
    (tmp_path / "mine.toml").write_text("[policy]\nrules = 1\n")
    with pytest.raises(TaskError, match=r"unknown entry in \[policy\]: rules"):
        tasks.read(tmp_path / "mine.py")


def test_a_precision_class_that_does_not_exist_is_named_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FOREIGN)
    (tmp_path / "mine.toml").write_text('[policy]\nprecision = "fp16"\n')
    with pytest.raises(TaskError, match=r"mine\.toml: precision 'fp16' is unknown; choose fp32 or tf32 or half"):
        tasks.read(tmp_path / "mine.py")
    (tmp_path / "mine.toml").write_text("[policy]\ncounts_operations = 1.5\n")
    with pytest.raises(TaskError, match=r"mine\.toml: counts_operations is 1\.5; write a share from 0 to 1"):
        tasks.read(tmp_path / "mine.py")


def test_a_scaled_product_of_8_bits_is_a_product() -> None:
    file = tasks.find("fp8_matmul")
    assert file.guessed_class is KernelClass.MATMUL
