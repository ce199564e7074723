"""What judging a task needs of the memory, told before anything is allocated."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from engine import supervisor
from engine.errors import TaskError
from engine.evaluator import fitting, tasks
from engine.evaluator.toolchains.cpu import CpuToolchain
from tests.shared_servers import asked, meter

GB = 10**9


def test_the_estimate_is_what_was_measured() -> None:
    """Peaks of the proportional set size of all processes, sampled while these were checked and timed."""
    measured: list[tuple[str, dict[str, int | float], float]] = [
        ("swish", {"batch_size": 2048, "dim": 16384}, 5.75),
        ("swish", {"batch_size": 2048, "dim": 34816}, 12.12),
        ("square_matmul", {"N": 4096}, 3.97),
    ]
    told = [meter().cost(tasks.find(name).task("cpu", sizes).source) for name, sizes, _ in measured]
    gib = [cost.bytes / 2**30 for cost in told if cost]
    assert gib == pytest.approx([peak for _, _, peak in measured], rel=0.15)


def test_a_task_that_is_too_large_is_refused_with_the_need_what_is_free_and_a_size_that_fits() -> None:
    told = fitting.refusal(60 * GB, 20 * GB, {"batch_size": 4096, "dim": 393216, "scale": 0.5})
    assert "needs about 60 GB of memory, and at most 12 of the 20 GB free here may be used: use smaller" in told
    assert "dim=65536 (393,216 now)" in told
    square = fitting.refusal(228_000 * GB, 20 * GB, {"N": 1_000_000})
    assert "about 228 TB" in square
    assert square.endswith("for example N=4096 (1,000,000 now)")
    assert fitting.refusal(12 * GB, 20 * GB, {"dim": 393216}) == ""
    assert fitting.refusal(60 * GB, 20 * GB, {}).endswith("use smaller sizes")
    assert fitting.refusal(10**18, 20 * GB, {"N": 9_999}).endswith("use smaller sizes"), "1 is no advice"


@pytest.mark.parametrize("size", [10**10, 10**20])
def test_a_tensor_with_more_bytes_than_can_be_counted_is_refused_too(size: int) -> None:
    with pytest.raises(TaskError, match=f"too large for PyTorch: use smaller sizes .N={size:,} now"):
        fitting.see_that_it_fits(tasks.find("square_matmul").task("cpu", {"N": size}).source, {"N": size})


def test_what_a_container_may_use_counts_as_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "GROUP", tmp_path)
    whole = fitting.free_bytes()
    (tmp_path / "memory.current").write_text("1000\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert fitting.free_bytes() == pytest.approx(whole, rel=0.2)
    (tmp_path / "memory.max").write_text("5000\n")
    assert fitting.free_bytes() == 4000


def test_the_command_line_refuses_before_anything_is_allocated(cpu: CpuToolchain, own_server: None) -> None:
    task = tasks.find("swish").task("cpu", {"batch_size": 1 << 17, "dim": 1 << 17})
    with pytest.raises(TaskError, match=r"needs about .* TB of memory, and at most .* GB free here .*: .* for example"):
        cpu.limit(task)


def test_a_module_that_cannot_be_made_is_refused_and_one_that_looks_at_its_values_is_not() -> None:
    lacking = tasks.find("swish").text.replace("return []", "return [7, 8]")
    assert meter().cost(lacking) is None
    assert meter().failure.startswith("Model(*get_init_inputs()) ends in TypeError: Model.__init__() takes ")
    with pytest.raises(TaskError, match=r"takes .*: correct the constructor, or what get_init_inputs returns"):
        fitting.see_that_it_fits(lacking, {})
    looking = tasks.find("swish").text.replace(
        "        return x *", "        assert float(x.sum()) > 0\n        return x *"
    )
    fitting.see_that_it_fits(looking, {"dim": 393216})
    assert "Exception" in fitting.why_unknown(looking)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("return torch.sigmoidd(x)", "AttributeError: module 'torch' has no attribute 'sigmoidd'"),
        ("return x.sigmoidd()", "AttributeError: 'Tensor' object has no attribute 'sigmoidd'"),
        ("return self.weight * x", "AttributeError: 'Model' object has no attribute 'weight'"),
        ("return x * slope", "NameError: name 'slope' is not defined"),
        ("return torch.relu(x, 2, 3)", "TypeError: relu() takes 1 positional argument but 3 were given"),
        ("return torch.nn.ReLU()(x, x)", "TypeError: ReLU.forward() takes 2 positional arguments but 3 were given"),
    ],
)
def test_a_module_that_fails_when_it_is_called_is_refused(line: str, told: str) -> None:
    failing = tasks.find("swish").text.replace("return x *", f"{line}\n        return x *")
    assert asked(failing, backward=False) is None
    assert fitting.unusable(failing) == f"{fitting.FAILS}{told}: correct forward, or what get_inputs returns"


@pytest.mark.parametrize(
    "line",
    [
        "if type(x) is not torch.Tensor:\n            raise TypeError('no plain tensor')",
        "import numpy; numpy.asarray(x); numpy.sin(x)",
        "memoryview(x)",
        "x = torch.jit.script(torch.nn.ReLU())(x)",
        "x = x if x.sum() > 0 else -x",
        "x = x[x > 0]",
        "x.tolist()",
    ],
)
def test_a_module_that_may_fail_only_without_values_is_not_refused(line: str) -> None:
    small = tasks.find("swish").task("cpu", {"batch_size": 4, "dim": 8}).source  # a list has an item for each element
    honest = small.replace("return x *", f"{line}\n        return x *")
    asked(honest, backward=False)
    assert fitting.unusable(honest) == ""


TALKING = """import os
print("[1, 2]")
os.write(1, b"[1, 2]")
assert "OPENAI_API_KEY" not in os.environ and os.nice(0) >= 10
"""


def test_new_run_asks_only_about_the_processors_memory_whatever_a_module_prints(
    monkeypatch: pytest.MonkeyPatch, own_server: None
) -> None:
    """The module sees no key either, and leaves the processor to whatever measures."""
    monkeypatch.setenv("OPENAI_API_KEY", "a key of the server's")
    settings = supervisor.new_settings("swish", model="manual", overrides={"batch_size": 1 << 17, "dim": 1 << 17})
    settings = replace(settings, task_source=TALKING + settings.task_source)
    with pytest.raises(TaskError, match="smaller sizes, for example"):
        supervisor.see_that_it_fits(settings, tasks.find("swish"))
    supervisor.see_that_it_fits(replace(settings, toolchain="cuda"), tasks.find("swish"))


def test_one_module_is_run_at_a_time_and_none_that_was_typed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_end = list[str](), threading.Event()

    def cost(meter: fitting.CostMeter, source: str, *, backward: bool = False) -> None:
        begun.append(source)
        may_end.wait(10)
        raise OSError("no process can be started")

    def ask(source: str, seconds: float = 10) -> bool:
        until = time.monotonic() + seconds
        while not (is_made := supervisor.estimated(source)[0]) and source not in begun and time.monotonic() < until:
            time.sleep(0.01)
        return is_made

    monkeypatch.setenv("TILEWRIGHT_HOME", str(tmp_path))
    monkeypatch.setattr(fitting.CostMeter, "cost", cost)
    monkeypatch.setattr(fitting, "SETTLED_S", 0.05)
    assert not ask("typed over", 0)
    assert not ask("whole")
    assert not ask("another one's", 0.2)
    assert begun == ["whole"]
    may_end.set()
    until = time.monotonic() + 10
    while not supervisor.estimated("another one's")[0] and time.monotonic() < until:
        time.sleep(0.01)
    assert [supervisor.estimated(one) for one in begun] == [(True, None)] * 2
    assert begun == ["whole", "another one's"]


LOOKS_AROUND = """
import os
import socket
import torch
import torch.nn as nn

ways_out = []
for way in (
    lambda: open({outside!r}, "w").write("x"),
    lambda: open({secret!r}).read(),
    lambda: os.kill({server}, 0),
    lambda: socket.create_connection(("192.0.2.1", 9), 0.1),
):
    try:
        way()
        ways_out.append(way)
    except TimeoutError:
        ways_out.append(way)
    except OSError:
        pass


class Model(nn.Module):
    def forward(self, x):
        return self.some_were_found if ways_out else self.none_was_found


def get_inputs():
    return [torch.rand(8)]


def get_init_inputs():
    return []
"""


def test_a_module_whose_memory_is_estimated_sees_nothing_of_this_machine(tmp_path: Path) -> None:
    secret, outside = tmp_path / "secret", tmp_path / "outside"
    secret.write_text("s")
    text = LOOKS_AROUND.format(outside=str(outside), secret=str(secret), server=os.getpid())
    assert meter().cost(text) is None
    assert "none_was_found" in meter().failure
    assert not outside.exists()


FORGED = """
import os
for file in range(3, 20):
    try:
        os.write(file, b'{"cost": [-1, 0]}\\n')
    except OSError:
        pass
"""


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("while True:\n    print('x' * (1 << 20))\n", "it printed more than 64 MiB"),
        ("held = [b'x' * (1 << 28) for _ in range(64)]\nimport time; time.sleep(30)\n", "GiB in all its processes"),
        (FORGED, "without being asked"),
        ("import os; os._exit(3)", "ended"),
    ],
)
def test_a_module_that_takes_too_much_or_answers_for_itself_ends_its_own_process(text: str, why: str) -> None:
    assert meter().cost(text) is None
    assert why in meter().failure
    swish = tasks.find("swish").task("cpu", {"batch_size": 4, "dim": 8}).source
    assert meter().cost(swish) is not None, "the next task is followed as ever"


def test_who_estimates_leaves_no_folder_behind(
    tmp_path: Path, own_server: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with fitting.CostMeter() as own:
        assert own.cost(tasks.find("swish").task("cpu").source) is not None
        assert list(tmp_path.glob("tilewright.estimate.*/lock"))
    assert not list(tmp_path.glob("tilewright.estimate.*"))
