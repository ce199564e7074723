"""Profiling on the GPU: Nsight Compute around one call of a candidate, and what stands in for it where it may not."""
