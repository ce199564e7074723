from tests.engine.toolchains.fixtures import cuda_home, gpu, scratch

__all__ = ["cuda_home", "gpu", "scratch"]
