"""Child process that measures a device's ceilings and prints one line of JSON; its argument is our built library.

Copies and the FMA rate come from our own small kernels, tensor rates from the vendor's library, the best there is.
"""

from __future__ import annotations

import ctypes
import json
import sys
from typing import Any

SIZES = [1 << power for power in range(20, 34)]
# cudaDeviceAttr: see cuda_runtime_api.h.
ATTRIBUTES = {
    "sm_count": 16, "l2_bytes": 38, "threads": 39, "shared_bytes": 81, "registers": 82, "blocks": 106,
    "reserved_shared_bytes": 111,
}  # fmt: skip


def main(library: str) -> None:
    """Measure and print."""
    import torch

    torch.cuda.init()  # type: ignore[no-untyped-call]
    torch.zeros(1, device="cuda")
    told: dict[str, Any] = _own_kernels(library)
    torch.backends.cuda.matmul.allow_tf32 = True
    told["tf32_gflop_s"] = max(_product_gflop_s(torch.float32, size) for size in (4096, 8192, 12288))
    told["bf16_gflop_s"] = max(_product_gflop_s(torch.bfloat16, size) for size in (4096, 8192, 12288))
    print(json.dumps(told), flush=True)


def _own_kernels(path: str) -> dict[str, Any]:
    library = ctypes.CDLL(path)
    library.copy_gb_s.restype = library.fma_gflop_s.restype = ctypes.c_double
    library.copy_gb_s.argtypes = [ctypes.c_size_t]
    rates = {str(size): float(library.copy_gb_s(size)) for size in SIZES}
    copies = {size: rate for size, rate in rates.items() if rate > 0}  # a set that does not fit has no rate
    values = {name: int(library.attribute(number)) for name, number in ATTRIBUTES.items()}
    values["warps"] = values.pop("threads") // 32
    large = [rate for size, rate in copies.items() if int(size) >= 8 * values["l2_bytes"]]
    fma = max(float(library.fma_gflop_s()) for _ in range(3))
    return {**values, "copy_gb_s": copies, "bandwidth_gb_s": max(large, default=0.0), "fp32_gflop_s": fma}


def _product_gflop_s(dtype: Any, size: int) -> float:
    """Of a square product with even random numbers: what values are multiplied changes the power drawn."""
    import torch

    a = torch.rand(size, size, device="cuda").to(dtype)
    b = torch.rand(size, size, device="cuda").to(dtype)
    best_ms = float("inf")
    for _ in range(10):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        begin.record()
        a @ b
        end.record()
        end.synchronize()
        best_ms = min(best_ms, begin.elapsed_time(end))
    return 2 * size**3 / best_ms / 1e6


if __name__ == "__main__":
    main(sys.argv[1])
