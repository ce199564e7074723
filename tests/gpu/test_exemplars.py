"""The example kernels shown to the model compute on a real GPU what they say, as exactly as they say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.evaluator import languages
from engine.evaluator.build import cute_dsl
from engine.search import exemplars
from storage.results.vocabulary import Verdict
from tests.engine.exemplars import files, task_of

pytestmark = pytest.mark.gpu

SHOWN = [(name, path) for name in languages.of_toolchain("cuda") for path in files("cuda", name)]


@pytest.mark.parametrize(("language", "path"), SHOWN, ids=[f"{name}-{path.stem}" for name, path in SHOWN])
def test_an_example_shown_to_the_model_is_right(gpu: Any, language: str, path: Path) -> None:
    if language == "cute_dsl" and not cute_dsl.version():
        pytest.skip("needs CuTe's Python DSL: requirements-cute-dsl.txt")
    one = exemplars.table("cuda", language).examples[path.stem]
    if not exemplars.runs_on(one, gpu.installation.arch):
        pytest.skip(f"{path.stem} needs {one.architecture}, this is {gpu.installation.arch}")
    task = replace(task_of(path, one.precision or "fp32"), language=language)
    built = gpu.compile(task, path.read_text())
    assert built.is_ok, built.diagnostics
    assert all(one.spill_stores == 0 for one in built.resources)
    checked = gpu.check(task, path.read_text())
    assert checked.verdict is Verdict.PASSED, checked.message
    # bfloat16 parts come nearer than TF32 on the average, not in each element
    assert checked.precision in {"fp32-exact", f"{one.precision}-class"}
