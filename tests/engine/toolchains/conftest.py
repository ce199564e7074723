from tests.engine.toolchains.fixtures import cpu, cpu_home, cuda_home, gpu, scratch, small_swish

__all__ = ["cpu", "cpu_home", "cuda_home", "gpu", "scratch", "small_swish"]
