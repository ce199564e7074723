"""One toolchain of the processor for all tests of the engine's parts, with the fork server it keeps."""

from tests.engine.evaluator.toolchains.fixtures import cpu, cpu_home, small_swish

__all__ = ["cpu", "cpu_home", "small_swish"]
