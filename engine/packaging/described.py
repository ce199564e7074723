"""What a reference takes, returns and holds, asked in a sandbox: its text may be anybody's."""

from __future__ import annotations

import functools
import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.errors import EngineError, EvaluationModeNeeded
from engine.evaluator import sandbox
from engine.evaluator.sandbox.probe import probe

DESCRIBING = Path(__file__).with_name("describing.py")
LIMIT_S = 120.0
MOST_OUTPUT = 1_000_000


def described(source: str, name: str, mode: str = "") -> Mapping[str, Any]:
    """Inputs, state and outputs of a reference, as `describing` lists them. `mode` is what its module was put into.

    Raises:
        EvaluationModeNeeded: it can be packaged in evaluation mode alone.
        EngineError: it cannot be called, or is of a kind that a package cannot take.
    """
    answer = _asked(source, mode)
    if fault := answer.get("fault"):
        kind = EvaluationModeNeeded if answer.get("is_mended_by_evaluation_mode") else EngineError
        raise kind(f"{name} cannot be packaged: {fault}")
    return answer


@functools.lru_cache(maxsize=64)  # a child that imports PyTorch takes seconds
def _asked(source: str, mode: str) -> Mapping[str, Any]:
    with tempfile.TemporaryDirectory(prefix="tilewright.reference.") as folder:
        script = Path(folder, "describing.py")
        script.write_text(DESCRIBING.read_text())
        Path(folder, "reference.py").write_text(source)
        Path(folder).chmod(0o755)
        done = sandbox.run(
            [sys.executable, str(script), "reference.py", mode], Path(folder), LIMIT_S, probe(), max_output=MOST_OUTPUT
        )
    try:
        return json.loads(done.output.strip().splitlines()[-1])  # type: ignore[no-any-return]
    except (IndexError, ValueError):
        told = done.output.strip().splitlines()
        why = told[-1][:300] if told else f"it took longer than {LIMIT_S:.0f} s" if done.is_timeout else "no answer"
        raise EngineError(f"the task's reference cannot be called here: {why}") from None
