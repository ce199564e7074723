from tests.engine.toolchains.fixtures import cpu, cpu_home, small_swish

__all__ = ["cpu", "cpu_home", "small_swish"]
