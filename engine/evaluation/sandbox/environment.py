"""What evaluation processes see of the engine's environment."""

from __future__ import annotations

import os
import sys
import tempfile

PASSED_ON = (
    "PATH",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "TILEWRIGHT_HOME",
    "TILEWRIGHT_ISOLATION",
    "TILEWRIGHT_CUTLASS_INCLUDE",
    "TILEWRIGHT_CUDA_INCLUDE",
    "CUDA_HOME",
    "CUDA_VISIBLE_DEVICES",
    "CXX",
)


def environment(threads: int) -> dict[str, str]:
    """What evaluation processes see. No key of the engine's own environment gets through.

    The malloc settings keep freed memory mapped: fresh 64 MB outputs would otherwise be paid for in page faults, which
    dominate short kernels and would be measured instead of them. The spin count keeps an OpenMP thread from holding the
    processor that its team mate waits for, for milliseconds: 0.2 ms bridge the gaps between a kernel's own regions.
    Asked whether there is a GPU, torch must not start CUDA: no process forked afterwards could use it.
    """
    kept = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    return {
        **kept,
        "HOME": tempfile.gettempdir(),
        "USER": "tilewright",  # a user number of the child's own has no name to be looked up
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "OMP_NUM_THREADS": str(threads),
        "GOMP_SPINCOUNT": "2000",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
        "MALLOC_MMAP_MAX_": "0",
        "MALLOC_TRIM_THRESHOLD_": "100000000000",
        "MALLOC_TOP_PAD_": "268435456",
    }
