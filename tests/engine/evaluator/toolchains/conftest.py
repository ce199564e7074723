from tests.engine.evaluator.toolchains.fixtures import cuda_home, gpu, scratch

__all__ = ["cuda_home", "gpu", "scratch"]
