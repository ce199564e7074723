"""Imports one candidate file with PyTorch's own load_inline and tells how long that took. Run by benchmarks.builds."""

from __future__ import annotations

import functools
import json
import runpy
import sys
import time
from typing import Any

BUILT, FAILED = "stock-built", "stock-failed"


def main() -> None:
    path, settings = sys.argv[1], json.loads(sys.argv[2])
    from torch.utils import cpp_extension

    stock: Any = cpp_extension.load_inline
    if settings.get("cuda_home"):
        cpp_extension.CUDA_HOME = settings["cuda_home"]

    @functools.wraps(stock)
    def load_inline(*words: Any, **named: Any) -> Any:
        named["extra_include_paths"] = [*(named.get("extra_include_paths") or []), *settings["include"]]
        named["extra_cflags"] = [*(named.get("extra_cflags") or []), *settings["cflags"]]
        return stock(*words, **named)

    setattr(cpp_extension, "load_inline", load_inline)  # noqa: B010 - a wrapper on purpose
    started = time.monotonic()
    try:
        runpy.run_path(path)
    except Exception as error:  # noqa: BLE001 - whatever the file raises is its verdict
        print(f"{error}\n{FAILED} {time.monotonic() - started:.2f}")
    else:
        print(f"{BUILT} {time.monotonic() - started:.2f}")


if __name__ == "__main__":
    main()
