"""The reference through torch.compile as a source that is timed like a candidate: the second baseline. Trusted text."""

from __future__ import annotations

_TAIL = """

import os as _os

# In this process: a pool of compiling processes would outlive the call and be taken for a candidate's stray children.
import torch._inductor.config as _config

_config.compile_threads = 1
_os.environ["TORCHINDUCTOR_CACHE_DIR"] = _os.path.join(_os.environ["TMPDIR"], "inductor")


class ModelNew(Model):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self._compiled = torch.compile(super().forward)

    def forward(self, *inputs):
        return self._compiled(*inputs)
"""


def source(task_source: str) -> str:
    """A module whose ModelNew is the task's Model, compiled with the default backend at its first call."""
    return f"{task_source.rstrip()}\n\nimport torch\n{_TAIL}"
